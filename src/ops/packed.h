#pragma once

// Packed weights (kernels/packed.h), and the ops that use them. A packed weight gets no gradient;
// the ops pass gradients to x and to biases.
//
// A product has one of two arithmetics. The fast one, for inference, rounds x as the format
// requires (`packed_linear` in kernels.h). The exact one has the bits of the same op with
// weight.floats() (`packed_gemm`), forward and backward. It is used while ops are recorded, and
// always by weights that are marked with multiply_exactly(), so that a model that is trained over
// frozen packed weights (QLoRA, Dettmers et al. 2023) has the same arithmetic when it is evaluated.

#include "kernels/blocks.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace fovea {

// A matrix [N, C] in panels. Copies share memory.
class PackedWeight {
 public:
  PackedWeight() = default;  // empty: converts to false
  // Rounds f32 or bf16 of the host to the format; `group` is the group size of int8 and int4, 0 = a
  // row.
  PackedWeight(const Tensor& weight, WeightFormat format, int64_t group);
  // From the layout of files: rows i8 [N, C], or u8 [N, ceil(C/2)] with two weights per byte;
  // scales f16 [N, ceil(C/group)].
  PackedWeight(const Tensor& rows, const Tensor& scales, int64_t width, int64_t group);
  // Memory for a matrix [N, C], whose panels fill() sets. Block types have groups of 32.
  PackedWeight(WeightFormat format, int64_t outputs, int64_t width, int64_t group = 32);

  // Packs the panels from `begin` to `end`: from f32 or bf16 [N, C] of the host, or from blocks of
  // a GGUF file, whose numbers stay the same (see kernels/blocks.h). Several threads may fill
  // different panels. Returns the number of weights that are infinite or NaN.
  int64_t fill(const Tensor& weight, int64_t begin, int64_t end);
  int64_t fill(const BlockRows& rows, int64_t begin, int64_t end);

  explicit operator bool() const { return static_cast<bool>(panels_); }
  const PackedMatrix& matrix() const { return matrix_; }
  size_t bytes() const { return panels_.bytes() + scales_.bytes(); }
  const Device& device() const { return panels_.device(); }
  // Returns whether both are the same weight in memory.
  bool shares(const PackedWeight& other) const { return panels_.data() == other.panels_.data(); }
  void multiply_exactly() { exact_ = true; }
  bool multiplies_exactly() const;  // true while ops are recorded
  PackedWeight to(const Device& device) const;

  // The layout of files, as above.
  struct Quantized {
    Tensor rows, scales;
  };
  Quantized quantized() const;  // converts int8 or int4 back to the layout of files
  Tensor floats() const;        // returns the represented numbers, f32 [N, C]

 private:
  void allocate();
  void set_panels(const Tensor& panels, const Tensor& scales);

  PackedMatrix matrix_;
  Tensor panels_, scales_;  // u8, f16
  bool exact_ = false;
};

// y = x weight^T + bias.   x [..., C], bias [N] or empty -> [..., N] of dtype `out`
Tensor linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out);
// The same in the exact arithmetic: the bits of linear(x, weight.floats(), bias, out).
Tensor exact_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out);
struct PackedLayer {
  const PackedWeight& weight;
  const Tensor& bias;
};
// Applies several layers to the same x; in the fast arithmetic, consecutive layers whose weights
// have the same format and group size become one product.
std::vector<Tensor> linear(const Tensor& x, const std::vector<PackedLayer>& layers, DType out);

// Applies weights[e] and biases[e] to the next counts[e] rows of x; see ops.h.
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<PackedWeight>& weights, const std::vector<Tensor>& biases);

// linear_cross_entropy() of ops.h in the exact arithmetic.   weight [V, C]
Tensor linear_cross_entropy(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options = {});

// y[...] = table[ids[...]].   ids i32 [...], table [V, C] -> f32 [..., C]
Tensor embedding(const Tensor& ids, const PackedWeight& table);

}  // namespace fovea
