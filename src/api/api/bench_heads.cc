#include <algorithm>

#include "api/median_time.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "fovea/bench.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"
#include "spec/mixers.h"
#include "tensor/tape.h"
#include "transformer/transformer.h"

namespace fovea {
namespace {

Tensor random_leaf(const Shape& shape, DType dtype, uint32_t number) {
  Tensor x = convert(normal(shape, 1, 1, number), dtype);
  return x.want_gradient();
}

// Queries, keys and values of some heads.
struct HeadInputs {
  Tensor q, k, v;
};

// A forward and a backward pass of attention, for one call after the other.
void pass_through(const std::vector<HeadInputs>& calls, const AttentionOptions& options) {
  for (const auto& [q, k, v] : calls) {
    backward(sum(attention(q, k, v, options)));
    for (const Tensor& x : {q, k, v}) x.clear_gradient();
  }
}

}  // namespace

HeadsBench bench_heads(const BenchOptions& bench) {
  const FloatMode mode;
  check_fields(bench);
  model::Spec spec = model::preset(bench.preset);
  check_field(spec.decoder && !spec.encoder, "preset",
              "{} is not a decoder; expected a preset such as nano", bench.preset);
  check_field(!model::is_recurrent(*spec.decoder, 0), "preset",
              "{} has no attention; expected a preset such as nano", bench.preset);
  spec.vocabulary = std::max<int64_t>(spec.vocabulary, 1);
  const model::AttentionSpec a = model::validated(spec).decoder->attention;
  const int64_t B = bench.batch > 0 ? bench.batch : train::preset_training(bench.preset).batch;
  const int64_t T = spec.context, group = a.heads / a.kv_heads;
  const bool loop = bench.heads == HeadsWay::loop;
  const DType compute = bench.precision == train::Precision::bf16 ? DType::bf16 : DType::f32;
  std::vector<HeadInputs> calls;
  for (int64_t call = 0; call < (loop ? a.heads : 1); ++call) {
    const auto number = static_cast<uint32_t>(3 * call);
    const int64_t H = loop ? 1 : a.heads, G = loop ? 1 : a.kv_heads;
    if (loop && call % group > 0)  // heads that share their keys and values
      calls.push_back(
          {random_leaf({B, T, H, a.head_width}, compute, number), calls.back().k, calls.back().v});
    else
      calls.push_back({random_leaf({B, T, H, a.head_width}, compute, number),
                       random_leaf({B, T, G, a.head_width}, compute, number + 1),
                       random_leaf({B, T, G, a.value_width}, compute, number + 2)});
  }
  AttentionOptions options;
  options.mask.causal = true;
  constexpr int64_t kWarmup = 3;
  const double median =
      median_seconds([&](int64_t) { pass_through(calls, options); }, bench.steps, kWarmup);
  return {.preset = bench.preset,
          .precision = std::string(name_of(compute)),
          .isa = std::string(instruction_set()),
          .threads = thread_count(),
          .batch = B,
          .context = T,
          .heads = a.heads,
          .head_width = a.head_width,
          .milliseconds = 1e3 * median,
          .tokens_per_second = static_cast<double>(B * T) / median};
}

}  // namespace fovea
