#pragma once

// Lets an op be written once for dense and for packed weights [N, K].

#include <type_traits>

#include "ops/common.h"
#include "ops/packed.h"

namespace fovea {

template <class Weight>
inline constexpr bool kIsDense = std::is_same_v<Weight, Tensor>;

inline Shape shape_of(const Tensor& weight) { return weight.shape(); }
inline Shape shape_of(const PackedWeight& weight) {
  return {weight.matrix().outputs, weight.matrix().width};
}

// Returns the weight as an operand of a product; packed ones are rounded by the product. The weight
// outlives the product.
// NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter)
inline const PackedWeight& in_dtype(const PackedWeight& weight, DType) { return weight; }

// Returns the outputs [begin, end); `begin` is a multiple of 16 if the weight is packed.
inline Tensor outputs_of(const Tensor& weight, int64_t begin, int64_t end) {
  return weight.rows(begin, end);
}
inline PackedMatrix outputs_of(const PackedWeight& weight, int64_t begin, int64_t end) {
  return outputs_of(weight.packed(), begin, end);
}

// c (+)= a weight^T + bias or a weight, with the weight rounded to a's dtype: see `gemm` and
// `packed_gemm` in kernels.h.
inline void multiply(const Kernels& k, Out c, In a, const Tensor& weight, In bias,
                     const GemmShape& shape) {
  k.gemm(c, a, in_dtype(weight, a.dtype), bias, shape);
}
inline void multiply(const Kernels& k, Out c, In a, const PackedMatrix& weight, In bias,
                     const GemmShape& shape) {
  k.packed_gemm(c, a, weight, bias, shape);
}
inline void multiply(const Kernels& k, Out c, In a, const PackedWeight& weight, In bias,
                     const GemmShape& shape) {
  k.packed_gemm(c, a, weight.packed(), bias, shape);
}

}  // namespace fovea
