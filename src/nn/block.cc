#include "nn/block.h"

namespace fovea {
namespace {

// y = sum_norm(x + dropout(output_norm(sublayer(input_norm(x)))))
template <class Sublayer>
Tensor residual(const Tensor& x, const Norms& norm, const Pass& pass, const Dropout& drop,
                Sublayer&& sublayer) {
  const Tensor y = norm.output(sublayer(norm.input(x, pass.compute)), pass.compute);
  return norm.sum(add(x, dropout(y, drop)), x.dtype());
}

}  // namespace

Block::Block(const StackSpec& spec, const DropoutSpec& dropout, int64_t width, int64_t layer_)
    : attention(spec.attention, width, layer_, dropout.attention),
      ffn(spec.ffn, width),
      attention_norm(spec.norm, spec.placement, width),
      ffn_norm(spec.norm, spec.placement, width),
      parallel(spec.parallel),
      layer(layer_),
      dropout_probability(dropout.residual) {}

Tensor Block::operator()(const Tensor& x, const Pass& pass) const {
  const Dropout first = pass.drop(dropout_probability, place_of_dropout(layer, 1));
  const Dropout second = pass.drop(dropout_probability, place_of_dropout(layer, 2));
  if (parallel) {
    const Tensor a = attention(attention_norm.input(x, pass.compute), pass);
    const Tensor b = ffn(ffn_norm.input(x, pass.compute));
    return add(add(x, dropout(a, first)), dropout(b, second));
  }
  const Tensor h =
      residual(x, attention_norm, pass, first, [&](const Tensor& y) { return attention(y, pass); });
  return residual(h, ffn_norm, pass, second, ffn);  // [B, T, C]
}

}  // namespace fovea
