#pragma once

#include <nanobind/ndarray.h>

#include <memory>
#include <numeric>
#include <vector>

#include "fovea/core/tensor.h"

namespace fovea::python {

template <class T>
using Array = nanobind::ndarray<nanobind::numpy, T>;

// Returns a NumPy array that owns the values; no shape = one axis.
template <class T>
Array<T> array_of(std::vector<T>&& values, std::vector<size_t> shape = {}) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  if (shape.empty()) shape = {kept->size()};
  T* const data = kept->data();
  const nanobind::capsule owner(kept.release(),
                                [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array<T>(data, shape.size(), shape.data(), owner);
}

// Returns a NumPy array that shares the tensor's elements; one of bf16 numbers is a copy in f32,
// since NumPy has no such type.
nanobind::object array_of(const Tensor& tensor, bool writable = true);

// Returns a tensor of the elements of a NumPy array, or of any object with DLPack, of which it is a
// view. Throws InvalidArgument unless the elements are contiguous, in host memory and of a type
// that DType has.
Tensor tensor_from(const nanobind::object& array);

}  // namespace fovea::python
