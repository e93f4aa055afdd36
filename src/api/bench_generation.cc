#include <algorithm>
#include <chrono>

#include "api/parts.h"
#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "plan/machine.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// What decoding is measured behind: short, as the peers' benchmark has it, so that the time is that
// of the weights.
constexpr int64_t kBefore = 16;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Sequences of equal length on one cache.
class Sequences {
 public:
  Sequences(const Transformer& model, int64_t batch, int64_t capacity)
      : model_(model),
        batch_(batch),
        cache_(PagePool::layout_for(*model.spec.decoder, DType::f32), batch, capacity) {}

  // Reads `count` tokens in each sequence, and computes the logits of the last.
  void read(int64_t count) {
    const NoGradient off;
    const Tensor ids = empty({batch_, count}, DType::i32);
    for (int64_t i = 0; i < ids.size(); ++i) {
      ids.data_as<int32_t>()[i] =
          static_cast<int32_t>(random_.word() % static_cast<uint64_t>(model_.spec.vocabulary));
    }
    Pass pass;
    pass.cache = &cache_;
    const Tensor hidden = model_.hidden(ids, pass);  // [B, T, C]
    if (batch_ > 1 && count > 1) return;
    const int64_t rows = batch_ * count;
    model_.logits(hidden.view({rows, hidden.dim(2)}).rows(count == 1 ? 0 : rows - 1, rows));
  }
  void clear() { cache_.clear(); }

 private:
  const Transformer& model_;
  int64_t batch_;
  KvCache cache_;
  Random random_{1, Stream::sampling};
};

}  // namespace

GenerationBench bench_generation(const Model& model, int64_t prompt, int64_t decode,
                                 int64_t batch) {
  const Transformer& transformer = model.parts().transformer;
  const Spec& spec = transformer.spec;
  check(spec.decoder && !spec.encoder,
        "bench: the model is no decoder; expected one that generates");
  check(prompt >= 1 && prompt <= spec.context,
        "--prompt: {}; expected 1 to {}, the model's context", prompt, spec.context);
  check(decode >= 1 && decode + kBefore <= spec.context, "--decode: {}; expected 1 to {}", decode,
        spec.context - kBefore);
  check(batch >= 1, "--batch: {}; expected at least 1", batch);
  GenerationBench result;
  result.isa = active_isa();
  result.threads = thread_count();
  result.prompt = prompt;
  result.decode = decode;
  result.batch = batch;
  result.weight_bytes = model.weight_bytes();

  auto start = std::chrono::steady_clock::now();
  Sequences one(transformer, 1, std::max(prompt, kBefore));
  one.read(kBefore);
  result.first_token_seconds = seconds_since(start);
  one.clear();
  start = std::chrono::steady_clock::now();
  one.read(prompt);
  result.prompt_seconds = seconds_since(start);
  result.prompt_tokens_per_second = static_cast<double>(prompt) / result.prompt_seconds;

  Sequences all(transformer, batch, kBefore + decode);
  all.read(kBefore);
  start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < decode; ++i) all.read(1);
  result.decode_seconds = seconds_since(start);
  result.decode_tokens_per_second = static_cast<double>(batch * decode) / result.decode_seconds;
  result.peak_bytes = resident_peak();
  return result;
}

}  // namespace fovea
