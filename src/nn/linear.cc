#include "nn/linear.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace fovea {

void add_adapter(Linear& layer, int64_t rank, float alpha, uint64_t seed) {
  check(layer.weight.present() && rank >= 1, "adapter: rank {} of a weight {}; expected at least 1",
        rank, layer.weight.shape);
  const int64_t out = layer.weight.shape[0], in = layer.weight.shape[1];
  layer.adapter.down = {{rank, in}, Role::matrix, empty({rank, in})};
  layer.adapter.up = {{out, rank}, Role::matrix, zeros({out, rank})};
  layer.adapter.scale = alpha / static_cast<float>(rank);
  Random random(seed, Stream::init);
  const float deviation = 1 / std::sqrt(static_cast<float>(in));
  float* down = layer.adapter.down.value.data_as<float>();
  for (int64_t i = 0; i < rank * in; ++i) down[i] = deviation * random.normal();
}

}  // namespace fovea
