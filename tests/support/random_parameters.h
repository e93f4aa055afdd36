#pragma once

#include <cmath>
#include <string>

#include "fovea/core/random.h"
#include "nn/parameter.h"

namespace fovea::test {

// Sets every parameter of a layer or a model to random values, so that each affects the result:
// gains around 1, biases other than 0, matrices that preserve magnitudes.
template <class Layer>
void randomise(Layer& layer, uint64_t seed) {
  uint32_t index = 0;
  const auto f = [&](const std::string&, model::Parameter& p) {
    p.value = zeros(p.shape);
    Random random(seed, Stream::init, index++);
    const bool table =
        p.role == model::Role::token_embedding || p.role == model::Role::position_embedding;
    const float deviation = p.shape.size() < 2 ? 0.3f
                            : table            ? 1.0f
                                               : 1 / std::sqrt(static_cast<float>(p.shape.back()));
    for (int64_t i = 0; i < p.value.size(); ++i) {
      p.value.data_as<float>()[i] =
          (p.role == model::Role::gain ? 1.0f : 0.0f) + deviation * random.normal();
    }
  };
  if constexpr (requires { layer.each(f); }) {
    layer.each(f);
  } else {
    layer.each(f, "");
  }
}

}  // namespace fovea::test
