#pragma once

// The devices "cuda", an NVIDIA GPU, and "cuda-model", the model of one. Both have the same table,
// which starts kernels on the one that the process uses: it can use only one of them.

#include "kernels/device.h"

namespace fovea {

// Registers the device at the first call, and returns it. `number`: which GPU. Throws Unsupported
// if this machine or this build has none, and InvalidArgument if the process uses another GPU or
// the other device.
const Device& cuda_device(int number = 0);
const Device& cuda_model_device();

namespace cuda {
const Kernels& kernels(DType dtype);  // throws Unsupported for f64
// Sets the seed of the orders in which the model runs threads and blocks.
void set_model_order(uint64_t seed);
}  // namespace cuda

}  // namespace fovea
