#pragma once

// Packed weights (kernels/layout/packed.h), and the ops that use them. A packed weight gets no
// gradient; the ops pass gradients to x and to biases.
//
// A product has one of two arithmetics. The fast one, for inference, rounds x as the format
// requires (`packed_linear` in kernels.h). The exact one has the bits of the same op with
// weight.floats() (`packed_gemm`), forward and backward. It is used while ops are recorded, and
// always by weights that are marked with multiply_exactly(), so that a model that is trained over
// frozen packed weights (QLoRA, Dettmers et al. 2023) has the same arithmetic when it is evaluated.

#include <memory>
#include <optional>
#include <span>

#include "kernels/layout/blocks.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace fovea {

// The rows of a matrix in a file or in memory, from which panels are packed. Several threads may
// use an object at the same time.
class WeightRows {
 public:
  virtual ~WeightRows() = default;
  // Packs the rows from `first` on, as many as `part` has outputs. Returns the number of weights
  // that are infinite or NaN.
  virtual int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
                       uint16_t* scales) const = 0;
  // Returns the same number for `count` rows of `whole`, without packing them.
  virtual int64_t count_nonfinite(const PackedMatrix& whole, int64_t first,
                                  int64_t count) const = 0;
  // Call it after the last use of these rows: their memory may be needed for others.
  virtual void release(int64_t first, int64_t count) const = 0;
};

// A matrix [N, C] in panels. Copies share memory.
//
// A weight with WeightRows is packed late. The first product that uses it packs one part after
// another into memory of the product; the second one packs it for good. So a model answers before
// all weights are packed: to get new memory for them can take longer than to pack them. With
// stay_in_rows(), every product packs parts: for models that are larger than memory.
class PackedWeight {
 public:
  PackedWeight() = default;  // empty: converts to false
  // Rounds f32 or bf16 of the host to the format; `group` is the group size of int8 and int4, 0 = a
  // row.
  PackedWeight(const Tensor& weight, WeightFormat format, int64_t group);
  // From the layout of files: rows i8 [N, C], or u8 [N, ceil(C/2)] with two weights per byte;
  // scales f16 [N, ceil(C/group)].
  PackedWeight(const Tensor& rows, const Tensor& scales, int64_t width, int64_t group);
  // Packed late. Block types have groups of 32.
  PackedWeight(WeightFormat format, int64_t outputs, int64_t width, int64_t group,
               std::unique_ptr<const WeightRows> rows);

  explicit operator bool() const { return late_ || panels_; }
  // The addresses are null in a weight that is packed late.
  const PackedMatrix& matrix() const { return matrix_; }
  size_t bytes() const;  // of all panels and scales
  const Device& device() const { return panels_.device(); }
  // Returns whether both are the same weight in memory.
  bool shares(const PackedWeight& other) const {
    return late_ ? late_ == other.late_ : panels_.data() == other.panels_.data();
  }

  // Packs the weight for good, unless it is packed, and returns it with its addresses.
  const PackedMatrix& packed() const;
  // Counts a use of a weight; returns whether it is packed, at the latest for the second use.
  bool packed_for_use() const;
  void stay_in_rows();
  std::shared_ptr<const WeightRows> rows() const;  // null if the weight is packed
  // Pack a weight for good on several threads: begin, pack parts, end. pack_part() packs the panels
  // from `begin` to `end` and returns the number of weights that are not finite.
  void begin_packing() const;
  int64_t pack_part(int64_t begin, int64_t end) const;
  void end_packing() const;
  // Returns the same number without packing the panels.
  int64_t count_nonfinite(int64_t begin, int64_t end) const;

  void multiply_exactly() { exact_ = true; }
  bool multiplies_exactly() const;  // true while ops are recorded
  PackedWeight to(const Device& device) const;

  // The layout of files, as above.
  struct Quantized {
    Tensor rows, scales;
  };
  Quantized quantized() const;  // converts int8 or int4 back to the layout of files
  Tensor floats() const;        // returns the represented numbers, f32 [N, C]

  struct Panels;

 private:
  struct Late;  // shared by copies

  void set_panels(const Tensor& panels, const Tensor& scales);

  PackedMatrix matrix_;
  Tensor panels_, scales_;  // u8, f16
  std::shared_ptr<Late> late_;
  bool exact_ = false;
};

// y = x weight^T + bias.   x [..., C], bias [N] or empty -> [..., N] of dtype `out`
Tensor linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out);
// The same in the exact arithmetic: the bits of linear(x, weight.floats(), bias, out).
Tensor exact_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out);
// adapted_linear() of ops.h in the exact arithmetic.
Tensor adapted_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                      const LowRank& low);
// y = x weight^T + bias or, with an activation f, f of this sum; plus the residual [..., N] of y's
// dtype, if there is one.
struct PackedLayer {
  const PackedWeight& weight;
  const Tensor& bias;
  std::optional<Activation> activation = {};
  Tensor residual = {};
};
// Applies several layers to the same x; in the fast arithmetic, consecutive layers whose weights
// have the same format and group size become one product.
std::vector<Tensor> linear(const Tensor& x, const std::vector<PackedLayer>& layers, DType out);

// Sets y to the layer's output in the fast arithmetic, without packing the weight for good.
void multiply_late(const Tensor& y, const Tensor& x, const PackedLayer& layer);

// Applies weights[e] and biases[e] to the next counts[e] rows of x; see ops.h.
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<PackedWeight>& weights, const std::vector<Tensor>& biases);

// linear_cross_entropy() of ops.h in the exact arithmetic.   weight [V, C]
Tensor linear_cross_entropy(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options = {});
Tensor linear_log_probability(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                              const Tensor& targets, float softcap = 0, LogitBlocks blocks = {});

// y[...] = table[ids[...]].   ids i32 [...], table [V, C] -> f32 [..., C]
Tensor embedding(const Tensor& ids, const PackedWeight& table);

}  // namespace fovea
