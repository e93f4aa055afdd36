#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "fovea/embed.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace fovea {

EmbedBench bench_embedding(const Embedder& embedder, const std::vector<std::string>& texts,
                           int64_t runs, const EmbedOptions& options) {
  check(runs >= 1 && !texts.empty(), "bench: {} runs of {} texts; expected at least 1 of each",
        runs, texts.size());
  const Embeddings first = embedder.embed(texts, options);
  std::vector<double> seconds;
  for (int64_t run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    static_cast<void>(embedder.embed(texts, options));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  EmbedBench result;
  result.isa = active_isa();
  result.threads = thread_count();
  result.sentences = first.count;
  result.tokens = std::accumulate(first.tokens.begin(), first.tokens.end(), int64_t{0});
  result.seconds = seconds[static_cast<size_t>(runs / 2)];
  result.sentences_per_second = static_cast<double>(result.sentences) / result.seconds;
  result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
  return result;
}

}  // namespace fovea
