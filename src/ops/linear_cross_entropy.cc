#include <cmath>

#include "base/error.h"
#include "ops/offset.h"
#include "ops/row_loss.h"
#include "ops/statistics.h"
#include "ops/units.h"
#include "ops/weights.h"
#include "tensor/tape.h"

// The logits are computed block by block, up to twice, and each block is freed after its use (cf.
// Wijmans et al. 2024, "Cut Your Losses in Large-Vocabulary Language Models"). The bits are those
// of cross_entropy(softcap(linear(x, weight, bias))):
//  - Blocks of complete rows of logits give the losses, and the rows of dx, which are sums over all
//    classes. They are computed in the forward pass, with dy = 1.
//  - Blocks of columns, for all rows, give the rows of dweight and the elements of dbias, which are
//    sums over all rows. Only the statistics of each row (RowLoss) are kept for them.
// So no sum is divided, and each is computed by the same call of a kernel as without blocks.

namespace fovea {
namespace {

constexpr int64_t kFewest = 64;  // rows or columns of a block; fewer would make products slow

// The logits of x [R, C] or of some of its rows: softcap(x weight^T + bias).
template <class Weight>
struct Logits {
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
  // Returns the gradient of `products`, of which `logits` are capped(products), for these rows and
  // columns, in `dtype` if nothing more is computed with it.
  Tensor gradient(const Tensor& products, const Tensor& logits, const RowLoss& loss, Interval rows,
                  Interval columns, double dy, DType dtype) const {
    const bool final = softcap == 0 && !loss.sums_gradients();
    const Tensor dlogits = empty(logits.shape(), final ? dtype : logits.dtype(), logits.device());
    loss.backward(dlogits, logits, dy, rows.begin, rows.end, {columns.begin, classes()});
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
void multiply_by_weight(Out dx, const Tensor& dproducts, const Logits<Weight>& of) {
  const Tensor dy = in_dtype(dproducts, of.operands);
  multiply(kernels(dy), dx, dy, of.weight, {},
           {dy.dim(0), shape_of(of.weight)[1], of.classes(), false, false});
}

// dweight = dy^T x,   dbias = sum over rows of dy
template <class Weight>
void add_gradients_of_weights(Out dweight, Out dbias, const Tensor& x, const Logits<Weight>& of,
                              const RowLoss& loss, double dy, const LogitBlocks& blocks,
                              const RowUnits& row_units) {
  if (dweight.data == nullptr && dbias.data == nullptr) return;
  const int64_t R = x.dim(0), C = x.dim(1);
  const Units units = row_units.of(R);
  each_block(of.classes(), blocks.columns, [&](int64_t begin, int64_t end) {
    const Tensor products = of.products(x, {begin, end});
    const Tensor gradient = of.gradient(products, of.capped(products), loss, {0, R}, {begin, end},
                                        dy, dbias.data != nullptr ? working_type(x) : x.dtype());
    const Kernels& k = kernels(x);
    if (dbias.data != nullptr) k.sum_rows(at(dbias, begin), gradient, {R, end - begin, units});
    if (dweight.data != nullptr)
      k.gemm(at(dweight, begin * C), in_dtype(gradient, x.dtype()), x, {},
             {end - begin, C, R, true, false, units});
  });
}

void check_shapes(const Tensor& x, const Shape& weight, const Tensor& bias, float softcap) {
  check(weight.size() == 2 && x.rank() >= 1 && x.dim(-1) == weight[1],
        "linear_cross_entropy: weight is {}, x is {}; expected [V, C] and [..., C]", weight,
        x.shape());
  check(!bias || bias.shape() == Shape{weight[0]},
        "linear_cross_entropy: bias is {}, weight is {}; expected [V] and [V, C]", bias.shape(),
        weight);
  check(softcap >= 0 && std::isfinite(softcap),
        "linear_cross_entropy: softcap {}; expected 0 (none) or more", softcap);
}

}  // namespace

LogitBlocks logit_blocks(int64_t rows, int64_t classes) {
  const int64_t columns = kLogitsOfBlock / std::max<int64_t>(rows, 1) / kFewest * kFewest;
  return {std::max(kFewest, kLogitsOfBlock / std::max<int64_t>(classes, 1)),
          std::max(kFewest, columns)};
}

namespace {

LogitBlocks blocks_of(const LossOptions& options, int64_t rows, int64_t classes, bool packed) {
  LogitBlocks blocks = options.blocks.rows > 0 ? options.blocks : logit_blocks(rows, classes);
  constexpr int64_t kStep = kPanelOutputs;  // packed columns begin at a panel
  if (packed) blocks.columns = (blocks.columns + kStep - 1) / kStep * kStep;
  return blocks;
}

// `weight` is a Tensor or a PackedWeight, which gets no gradient.
template <class Weight>
Tensor loss_with(const Tensor& x, const Weight& weight, const Tensor& bias, const Tensor& targets,
                 const LossOptions& options) {
  check_shapes(x, shape_of(weight), bias, options.softcap);
  const int64_t V = shape_of(weight)[0], R = targets.size(), C = shape_of(weight)[1];
  check(x.size() == R * C, "linear_cross_entropy: x is {}, targets are {}; expected one per row",
        x.shape(), targets.shape());
  const RowLoss loss("linear_cross_entropy", x, targets, {R, V}, options);
  const LogitBlocks blocks = blocks_of(options, R, V, !kIsDense<Weight>);
  const Tensor rows = x.view({R, C}).detach();
  const auto logits_of = [=, softcap = options.softcap](DType dtype) {
    return Logits<Weight>{dtype, in_dtype(weight, dtype), bias ? bias.detach() : bias, softcap};
  };
  const Logits<Weight> of = logits_of(x.dtype());
  const bool wants_dx = recording() && x.wants_gradient();
  const Tensor first_dx = wants_dx ? empty({R, C}, x.dtype(), x.device()) : Tensor();
  each_block(R, blocks.rows, [&](int64_t begin, int64_t end) {
    const Tensor products = of.products(rows.rows(begin, end), of.all());
    const Tensor logits = of.capped(products);
    loss.forward(logits, begin, end);
    if (wants_dx)
      multiply_by_weight(
          first_dx.rows(begin, end),
          of.gradient(products, logits, loss, {begin, end}, of.all(), 1, of.operands), of);
  });

  if (!recording()) return loss.total();
  std::vector<Tensor> inputs = {x, bias};
  if constexpr (kIsDense<Weight>) inputs.push_back(weight);
  return record(
      loss.total(), inputs, [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
        const Tensor input = x.elements().view({R, C});
        const Logits<Weight> again = logits_of(input.dtype());
        const double factor = number_of(dy);
        const Out dbias = d[bias];
        Out dweight = {};
        if constexpr (kIsDense<Weight>) dweight = d[weight];
        add_gradients_of_weights(dweight, dbias, input, again, loss, factor, blocks, units);
        if (!d.wants(x)) return;
        const Out dx = d[x];
        if (factor == 1 && !dx.add) return kernels(input).convert(dx, first_dx, R * C);
        each_block(R, blocks.rows, [&](int64_t begin, int64_t end) {
          const Tensor products = again.products(input.rows(begin, end), again.all());
          multiply_by_weight(at(dx, begin * C),
                             again.gradient(products, again.capped(products), loss, {begin, end},
                                            again.all(), factor, again.operands),
                             again);
        });
      });
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options) {
  return loss_with(x, weight, bias, targets, options);
}

Tensor linear_cross_entropy(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options) {
  return loss_with(x, weight, bias, targets, options);
}

}  // namespace fovea
