#include "nn/stack.h"

#include <fmt/format.h>

namespace fovea {

Stack::Stack(const StackSpec& spec, const DropoutSpec& dropout, int64_t width)
    : norm(spec.norm, width, spec.final_norm) {
  for (int64_t layer = 0; layer < spec.layers; ++layer)
    blocks.emplace_back(spec, dropout, width, layer);
}

Tensor Stack::operator()(Tensor x, const Pass& pass) const {
  for (size_t i = 0; i < blocks.size(); ++i) {
    probe(pass, fmt::format("hidden.{}", i), x);
    x = blocks[i](x, pass);
  }
  if (pass.cache != nullptr) pass.cache->advance(x.dim(1));
  const Tensor y = norm(x, pass.compute);
  probe(pass, fmt::format("hidden.{}", blocks.size()), y);
  return y;
}

}  // namespace fovea
