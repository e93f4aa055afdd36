#pragma once

// Weights packed for inference (kernels/packed.h), and the ops that take them. A packed weight gets
// no gradient; linear() passes gradients on to x and bias, the other ops throw InvalidArgument
// where one is wanted.

#include "kernels/packed.h"
#include "tensor/tensor.h"

namespace fovea {

// A matrix [N, C] in panels. Copies share the memory.
class PackedWeight {
 public:
  PackedWeight() = default;  // absent; `if (weight)` tells
  // Rounds f32 or bf16 to the format; `group` is that of int8 and int4.
  PackedWeight(const Tensor& weight, WeightFormat format, int64_t group);
  // As files hold them: i8 [N, C], or u8 [N, C/2] of which each holds two; scales f16 [N, C/group].
  PackedWeight(const Tensor& rows, const Tensor& scales, int64_t width, int64_t group);

  explicit operator bool() const { return static_cast<bool>(panels_); }
  const PackedMatrix& matrix() const { return matrix_; }
  size_t bytes() const { return panels_.bytes() + scales_.bytes(); }

  // The way back: i8 or u8 and f16 as above; and the numbers that it stands for, f32 [N, C].
  struct Quantized {
    Tensor rows, scales;
  };
  Quantized quantized() const;
  Tensor floats() const;

 private:
  void allocate();

  PackedMatrix matrix_;
  Tensor panels_, scales_;  // u8, f16
};

// y = x weight^T + bias.   x [..., C], bias [N] or absent -> [..., N] of dtype `out`
Tensor linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out);
// The same of several layers on one x, in one go where their weights are packed alike.
struct PackedLayer {
  const PackedWeight& weight;
  const Tensor& bias;
};
std::vector<Tensor> linear(const Tensor& x, const std::vector<PackedLayer>& layers, DType out);

// The next counts[e] rows of x through weights[e] and biases[e]: see ops.h.
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<PackedWeight>& weights, const std::vector<Tensor>& biases);

// y[...] = table[ids[...]].   ids i32 [...], table [V, C] -> f32 [..., C]
Tensor embedding(const Tensor& ids, const PackedWeight& table);

}  // namespace fovea
