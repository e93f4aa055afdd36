#pragma once

// Layers, as functions with parameters. Letters: B batch, T tokens, C width.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/core/op_options.h"
#include "fovea/model/spec.h"
#include "fovea/nn/parameter.h"

namespace fovea::nn {

// What a pass asks of layers.
struct Pass {
  DType compute = DType::f32;   // of the operands of matrix products: f32 or bf16
  bool training = false;        // applies dropout
  uint64_t seed = 1, step = 0;  // of dropout: a step has its own random numbers
  // The keys that attention sees; a causal stack sets Mask::causal itself.
  Mask mask = {};
  // Receives the intermediate results whose names are in `hooked`, as soon as each is computed, and
  // may replace them by other tensors of the same shape and type. The names are those of traces
  // (docs/inspect.md) without the layer, such as "hidden", "attention" and "mlp_hidden".
  std::function<void(std::string_view name, int64_t layer, Tensor& value)> hook = {};
  std::vector<std::string> hooked = {};
};

// A layer: a function of a tensor, with parameters. Copies share the parameters. Layers may be used
// by several threads while nothing changes their parameters.
class Layer {
 public:
  using Function = std::function<Tensor(const Tensor& x, const Pass& pass)>;
  // A layer of one's own; `parameters` are those that `function` reads.
  Layer(Function function, std::vector<NamedParameter> parameters);

  Tensor operator()(const Tensor& x, const Pass& pass = {}) const { return function_(x, pass); }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

 private:
  Function function_;
  std::vector<NamedParameter> parameters_;
};

// The layers of fovea. Initial matrices are normally distributed, as in Radford et al. 2019, by
// numbers that depend on `seed`; gains are 1, biases 0. Each throws InvalidArgument, with the field
// and the allowed range, if a size or the description is invalid.

// y = x weight^T + bias.   x [..., in] -> [..., out]
Layer linear(int64_t in, int64_t out, bool bias, uint64_t seed, float deviation = 0.02f);
// LayerNorm, RMSNorm or DyT.   x [..., width] -> the same
Layer norm(const model::NormSpec& spec, int64_t width);
// Self-attention of the kind that `spec` describes, with its rotary positions or distance biases,
// but without norms and residual.   x [B, T, C] -> the same
Layer attention(const model::StackSpec& spec, int64_t width, int64_t context, uint64_t seed);
// A feed-forward layer or a mixture of experts.   x [B, T, C] -> the same
Layer feed_forward(const model::StackSpec& spec, int64_t width, uint64_t seed);
// The layers of an encoder or, with `causal`, of a decoder: positions, then spec.layers times the
// mixer and the feed-forward layer with their norms on the residual stream, then the final norm.
// x [B, T, C], embedded tokens, f32 -> [B, T, C] in Pass::compute
Layer stack(const model::StackSpec& spec, int64_t width, int64_t context, bool causal,
            uint64_t seed, const model::DropoutSpec& dropout = {});

// All layers after one another.
Layer sequence(const std::vector<Layer>& layers);

}  // namespace fovea::nn
