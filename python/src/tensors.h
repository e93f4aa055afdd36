#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "fovea/core/tensor.h"

namespace fovea::python {

// Types by their names in NumPy: "float32", "bfloat16", ...; "fp32" and "bf16" are accepted too.
DType dtype_of(const std::string& name);
std::string numpy_name(DType type);

using MaybeTensor = std::optional<Tensor>;  // None = an empty tensor
inline Tensor or_empty(const MaybeTensor& tensor) { return tensor ? *tensor : Tensor(); }

// Shapes are sequences of integers; -1 stands for the extent that fits `size`.
Shape shape_of(const std::vector<int64_t>& extents, int64_t size = -1);
std::vector<int64_t> extents_of(const Shape& shape);

}  // namespace fovea::python
