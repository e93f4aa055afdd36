#include "api/median_time.h"
#include "base/fields.h"
#include "base/machine.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "kernels/isa.h"
#include "open/model_parts.h"

namespace fovea {

TranslationBench bench_translation(const Model& model, const std::vector<std::string>& lines,
                                   const TranslateOptions& translation,
                                   const BenchOptions& options) {
  check_fields(options);
  check(!lines.empty(), "bench: no lines; expected at least one");
  TranslationBench result;
  const auto run = [&](int64_t) {
    size_t read = 0;
    result.tokens = result.source_tokens = 0;
    translate(
        model, translation,
        [&]() -> std::optional<std::string> {
          if (read == lines.size()) return std::nullopt;
          return lines[read++];
        },
        [&](const Translation& translated) {
          const Generation& best = translated.best[0];
          result.tokens += std::ssize(best.ids) + (best.finish == FinishReason::end);
          result.source_tokens += best.prompt_tokens;
          return true;
        });
  };
  result.seconds = median_seconds(run, options.runs);
  result.isa = active_isa();
  result.threads = thread_count();
  result.lines = std::ssize(lines);
  result.lines_per_second = static_cast<double>(result.lines) / result.seconds;
  result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea
