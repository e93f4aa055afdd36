#include "api/median_time.h"
#include "base/fields.h"
#include "base/machine.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "kernels/isa.h"
#include "open/model_parts.h"

namespace fovea {

TranslationBench bench_translation(const model::Model& model, const std::vector<std::string>& lines,
                                   const infer::TranslateOptions& translation,
                                   const BenchOptions& options) {
  check_fields(options);
  check(!lines.empty(), "bench: no lines; expected at least one");
  TranslationBench result;
  const auto run = [&](int64_t) {
    size_t read = 0;
    result.tokens = result.source_tokens = 0;
    infer::translate(
        model, translation,
        [&]() -> std::optional<std::string> {
          if (read == lines.size()) return std::nullopt;
          return lines[read++];
        },
        [&](const infer::Translation& translated) {
          const infer::Generation& best = translated.best[0];
          result.tokens += std::ssize(best.ids) + (best.finish == infer::FinishReason::end);
          result.source_tokens += best.prompt_tokens;
          return true;
        });
  };
  result.seconds = median_seconds(run, options.runs);
  result.isa = instruction_set();
  result.threads = thread_count();
  result.lines = std::ssize(lines);
  result.lines_per_second = static_cast<double>(result.lines) / result.seconds;
  result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea
