#pragma once

// Linear layers with low-rank adapters.

#include "nn/linear.h"

namespace fovea::model {

// Returns the bias that belongs to the product with the weight: none with DoRA, whose factors apply
// to the product without the bias.
const Tensor& product_bias(const Linear& layer);
// Returns the layer's output, given the product of x with the weight, plus product_bias().
Tensor adapted(const Linear& layer, const Tensor& product, const Tensor& x, const Pass& pass);

struct AdapterShape {
  int64_t rank = 0;
  float scale = 1, dropout = 0;
  bool dora = false;
  // Number of the adapter in its model: the substream of its random numbers.
  uint32_t index = 0;
};
// Adds an adapter without values. Does not change which of the layer's own parameters are
// trainable. Throws InvalidArgument if the layer has no weight or the rank is below 1.
void add_adapter(Linear& layer, const AdapterShape& shape);
// Sets the initial values, which do not change the output, as PEFT does: A is uniform in
// +-1 / sqrt(in) (He et al. 2015 with a slope of sqrt(5)), B is zero, m is the length of each row
// of the weight.
void initialise_adapter(Linear& layer, uint64_t seed);

}  // namespace fovea::model
