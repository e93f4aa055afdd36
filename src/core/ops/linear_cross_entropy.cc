#include "ops/blocked_logits.h"
#include "ops/row_loss.h"
#include "tensor/tape.h"

// The bits are those of cross_entropy(softcap(linear(x, weight, bias))). The rows of dx are
// computed in the forward pass, with dy = 1.

namespace fovea {

LogitBlocks logit_blocks(int64_t rows, int64_t classes) {
  constexpr int64_t kFewest = 64;  // rows or columns of a block; fewer would make products slow
  const int64_t columns = kLogitsOfBlock / std::max<int64_t>(rows, 1) / kFewest * kFewest;
  return {std::max(kFewest, kLogitsOfBlock / std::max<int64_t>(classes, 1)),
          std::max(kFewest, columns)};
}

namespace {

// Returns the gradient of products for these rows and columns, in `dtype` if nothing more is
// computed with it.
template <class Weight>
Tensor gradient_of_loss(const BlockedLogits<Weight>& of, const Tensor& products,
                        const RowLoss& loss, Interval rows, Interval columns, double dy,
                        DType dtype) {
  const Tensor logits = of.capped(products);
  return of.gradient(
      products, loss.sums_gradients() ? products.dtype() : dtype, [&](const Tensor& dlogits) {
        loss.backward(dlogits, logits, dy, rows.begin, rows.end, {columns.begin, of.classes()});
      });
}

// `weight` is a Tensor or a PackedWeight, which gets no gradient.
template <class Weight>
Tensor loss_with(const Tensor& x, const Weight& weight, const Tensor& bias, const Tensor& targets,
                 const LossOptions& options) {
  check_logit_shapes("linear_cross_entropy", x, shape_of(weight), bias, targets, options.softcap);
  const int64_t V = shape_of(weight)[0], R = targets.size(), C = shape_of(weight)[1];
  const RowLoss loss("linear_cross_entropy", x, targets, {R, V}, options);
  const LogitBlocks blocks = blocks_of(options.blocks, R, weight);
  const Tensor rows = x.view({R, C}).detach();
  const auto logits_of = [=, softcap = options.softcap](DType dtype) {
    return BlockedLogits<Weight>{dtype, in_dtype(weight, dtype), bias ? bias.detach() : bias,
                                 softcap};
  };
  const BlockedLogits<Weight> of = logits_of(x.dtype());
  const bool wants_dx = recording() && x.wants_gradient();
  const Tensor first_dx = wants_dx ? empty({R, C}, x.dtype(), x.device()) : Tensor();
  each_block(R, blocks.rows, [&](int64_t begin, int64_t end) {
    const Tensor products = of.products(rows.rows(begin, end), of.all());
    loss.forward(of.capped(products), begin, end);
    if (wants_dx)
      multiply_by_weight(
          first_dx.rows(begin, end),
          gradient_of_loss(of, products, loss, {begin, end}, of.all(), 1, of.operands), of);
  });

  if (!recording()) return loss.total();
  std::vector<Tensor> inputs = {x, bias};
  if constexpr (kIsDense<Weight>) inputs.push_back(weight);
  return record(
      loss.total(), inputs, [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
        const Tensor input = x.elements().view({R, C});
        const BlockedLogits<Weight> again = logits_of(input.dtype());
        const double factor = number_of(dy);
        const Out dbias = d[bias];
        Out dweight = {};
        if constexpr (kIsDense<Weight>) dweight = d[weight];
        add_gradients_of_weights(dweight, dbias, input, again, blocks, units,
                                 [&](const Tensor& products, Interval columns, DType dtype) {
                                   return gradient_of_loss(again, products, loss, {0, R}, columns,
                                                           factor, dtype);
                                 });
        if (!d.wants(x)) return;
        const Out dx = d[x];
        if (factor == 1 && !dx.add) return kernels(input).convert(dx, first_dx, R * C);
        each_block(R, blocks.rows, [&](int64_t begin, int64_t end) {
          const Tensor products = again.products(input.rows(begin, end), again.all());
          multiply_by_weight(at(dx, begin * C),
                             gradient_of_loss(again, products, loss, {begin, end}, again.all(),
                                              factor, again.operands),
                             again);
        });
      });
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets) {
  return linear_cross_entropy(x, weight, bias, targets, {});
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options) {
  return loss_with(x, weight, bias, targets, options);
}

Tensor linear_cross_entropy(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options) {
  return loss_with(x, weight, bias, targets, options);
}

}  // namespace fovea
