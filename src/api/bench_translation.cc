#include <algorithm>
#include <chrono>

#include "base/fields.h"
#include "base/machine.h"
#include "base/threads.h"
#include "families/model_parts.h"
#include "fovea/bench.h"
#include "kernels/isa.h"

namespace fovea {

TranslationBench bench_translation(const Model& model, const std::vector<std::string>& lines,
                                   const TranslateOptions& translation,
                                   const BenchOptions& options) {
  check_fields(options);
  check(!lines.empty(), "bench: no lines; expected at least one");
  TranslationBench result;
  const auto run = [&] {
    size_t read = 0;
    result.tokens = result.source_tokens = 0;
    const auto start = std::chrono::steady_clock::now();
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
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  run();
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.runs; ++i) seconds.push_back(run());
  const int64_t middle = options.runs / 2;
  std::nth_element(seconds.begin(), seconds.begin() + middle, seconds.end());
  result.isa = active_isa();
  result.threads = thread_count();
  result.lines = std::ssize(lines);
  result.seconds = seconds[static_cast<size_t>(middle)];
  result.lines_per_second = static_cast<double>(result.lines) / result.seconds;
  result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea
