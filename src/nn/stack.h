#pragma once

#include <vector>

#include "nn/block.h"

namespace fovea {

// The blocks one after the other, and the norm behind the last.
struct Stack {
  std::vector<Block> blocks;
  Norm norm;

  Stack() = default;
  Stack(const StackSpec& spec, const DropoutSpec& dropout, int64_t width);

  // x [B, T, C], f32 -> [B, T, C] in pass.compute
  Tensor operator()(Tensor x, const Pass& pass) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i].each(f, name + "." + std::to_string(i));
    norm.each(f, name + ".norm");
  }
};

}  // namespace fovea
