#pragma once

// The logits of a large vocabulary, computed block by block (cf. Wijmans et al. 2024, "Cut Your
// Losses in Large-Vocabulary Language Models"), for the ops that never store all of them.
//  - Blocks of complete rows of logits give the losses, and the rows of dx, which are sums over all
//    classes.
//  - Blocks of columns, for all rows, give the rows of dweight and the elements of dbias, which are
//    sums over all rows. Only the statistics of each row are kept for them.
// So no sum is divided, and each is computed by the same call of a kernel as without blocks.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/common.h"
#include "ops/units.h"
#include "ops/weights.h"

namespace fovea {

// The logits of x [R, C] or of some of its rows: softcap(x weight^T + bias).
template <class Weight>
struct BlockedLogits {
  DType operands;  // of the products: x's dtype
  Weight weight;   // [V, C]; a Tensor has this dtype
  Tensor bias;     // [V] or empty
  float softcap;

  int64_t classes() const { return shape_of(weight)[0]; }
  Interval all() const { return {0, classes()}; }

  // Returns columns of x weight^T + bias.   x [r, C] -> [r, columns]
  Tensor products(const Tensor& x, Interval columns) const {
    const int64_t rows = x.dim(0), width = columns.end - columns.begin;
    const Tensor y = empty({rows, width}, working_type(x), x.device());
    const Tensor part = bias ? bias.rows(columns.begin, columns.end) : Tensor();
    multiply(kernels(x), y, x, outputs_of(weight, columns.begin, columns.end),
             part ? In(part) : In{}, {rows, width, x.dim(1), false, true});
    return y;
  }
  Tensor capped(const Tensor& products) const {
    if (softcap == 0) return products;
    const Tensor y = empty_like(products);
    kernels(products).softcap(y, products, softcap, products.size());
    return y;
  }
  // Returns the gradient of `products` from that of capped(products), which write(dlogits) writes;
  // in `dtype` if there is no softcap.
  template <class Write>
  Tensor gradient(const Tensor& products, DType dtype, const Write& write) const {
    const Tensor dlogits =
        empty(products.shape(), softcap == 0 ? dtype : products.dtype(), products.device());
    write(dlogits);
    if (softcap == 0) return dlogits;
    const Tensor dproducts = empty_like(products);
    kernels(products).softcap_backward(dproducts, dlogits, products, softcap, products.size());
    return dproducts;
  }
};

// Calls use(begin, end) for each block of `size` of `count` indices.
template <class Use>
void each_block(int64_t count, int64_t size, const Use& use) {
  for (int64_t begin = 0; begin < count; begin += size) use(begin, std::min(begin + size, count));
}

// dx = dy weight, for some rows
template <class Weight>
void multiply_by_weight(Out dx, const Tensor& dproducts, const BlockedLogits<Weight>& of) {
  const Tensor dy = in_dtype(dproducts, of.operands);
  multiply(kernels(dy), dx, dy, of.weight, {},
           {dy.dim(0), shape_of(of.weight)[1], of.classes(), false, false});
}

// dweight = dy^T x,   dbias = sum over rows of dy
// gradient(products, columns, dtype) returns dy, the gradient of these columns of the products.
template <class Weight, class Gradient>
void add_gradients_of_weights(Out dweight, Out dbias, const Tensor& x,
                              const BlockedLogits<Weight>& of, const LogitBlocks& blocks,
                              const RowUnits& row_units, const Gradient& gradient) {
  if (dweight.data == nullptr && dbias.data == nullptr) return;
  const int64_t R = x.dim(0), C = x.dim(1);
  const Units units = row_units.of(R);
  each_block(of.classes(), blocks.columns, [&](int64_t begin, int64_t end) {
    const Tensor products = of.products(x, {begin, end});
    const Tensor dy = gradient(products, Interval{begin, end},
                               dbias.data != nullptr ? working_type(x) : x.dtype());
    const Kernels& k = kernels(x);
    if (dbias.data != nullptr) k.sum_rows(at(dbias, begin), dy, {R, end - begin, units});
    if (dweight.data != nullptr)
      k.gemm(at(dweight, begin * C), in_dtype(dy, x.dtype()), x, {},
             {end - begin, C, R, true, false, units});
  });
}

// Checks the shapes of the inputs of an op.
inline void check_logit_shapes(const char* op, const Tensor& x, const Shape& weight,
                               const Tensor& bias, const Tensor& targets, float softcap) {
  check(weight.size() == 2 && x.rank() >= 1 && x.dim(-1) == weight[1],
        "{}: weight is {}, x is {}; expected [V, C] and [..., C]", op, weight, x.shape());
  check(!bias || bias.shape() == Shape{weight[0]},
        "{}: bias is {}, weight is {}; expected [V] and [V, C]", op, bias.shape(), weight);
  check(softcap >= 0 && std::isfinite(softcap), "{}: softcap {}; expected 0 (none) or more", op,
        softcap);
  check(x.size() == targets.size() * weight[1], "{}: x is {}, targets are {}; expected one per row",
        op, x.shape(), targets.shape());
}

// Returns the given sizes of blocks, or those of logit_blocks() if they are 0.
template <class Weight>
LogitBlocks blocks_of(LogitBlocks blocks, int64_t rows, const Weight& weight) {
  if (blocks.rows == 0) blocks = logit_blocks(rows, shape_of(weight)[0]);
  constexpr int64_t kStep = kPanelOutputs;  // packed columns begin at a panel
  if (!kIsDense<Weight>) blocks.columns = (blocks.columns + kStep - 1) / kStep * kStep;
  return blocks;
}

}  // namespace fovea
