#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/fields.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace fovea {

EmbedBench bench_embedding(const Embedder& embedder, const std::vector<std::string>& texts,
                           const BenchOptions& options) {
  check_fields(options);
  check(!texts.empty(), "bench: no texts; expected at least one");
  const Embeddings first = embedder.embed(texts);
  std::vector<double> seconds;
  for (int64_t run = 0; run < options.runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    static_cast<void>(embedder.embed(texts));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const int64_t middle = options.runs / 2;
  std::nth_element(seconds.begin(), seconds.begin() + middle, seconds.end());
  EmbedBench result;
  result.isa = active_isa();
  result.threads = thread_count();
  result.sentences = first.count;
  result.tokens = std::accumulate(first.tokens.begin(), first.tokens.end(), int64_t{0});
  result.seconds = seconds[static_cast<size_t>(middle)];
  result.sentences_per_second = static_cast<double>(result.sentences) / result.seconds;
  result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
  return result;
}

}  // namespace fovea
