#include <numeric>

#include "api/median_time.h"
#include "base/fields.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace fovea {

EmbedBench bench_embedding(const infer::Embedder& embedder, const std::vector<std::string>& texts,
                           const BenchOptions& options) {
  check_fields(options);
  check(!texts.empty(), "bench: no texts; expected at least one");
  infer::Embeddings found;
  EmbedBench result;
  result.seconds = median_seconds([&](int64_t) { found = embedder.embed(texts); }, options.runs);
  result.isa = instruction_set();
  result.threads = thread_count();
  result.sentences = found.count;
  result.tokens = std::accumulate(found.tokens.begin(), found.tokens.end(), int64_t{0});
  result.sentences_per_second = static_cast<double>(result.sentences) / result.seconds;
  result.tokens_per_second = static_cast<double>(result.tokens) / result.seconds;
  return result;
}

}  // namespace fovea
