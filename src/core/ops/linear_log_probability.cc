#include "ops/blocked_logits.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

// The bits are those of log_probability(softcap(linear(x, weight, bias)), targets).

namespace fovea {
namespace {

// The statistics of complete rows of logits, and the gradient of their log-probabilities.
struct RowProbabilities {
  Tensor targets, losses, lse;  // [R]

  void forward(const Tensor& logits, int64_t begin, int64_t end) const {
    kernels(logits).cross_entropy(losses.rows(begin, end), lse.rows(begin, end), logits,
                                  targets.rows(begin, end), 0, {end - begin, logits.dim(1)});
  }
  // Returns the gradient of products for these rows and columns: dlogits[r] = dy[r] *
  // (onehot(targets[r]) - softmax(logits[r])).
  template <class Weight>
  Tensor gradient(const BlockedLogits<Weight>& of, const Tensor& products, const Tensor& dy,
                  Interval rows, Interval columns, DType dtype) const {
    const auto part = [&](const Tensor& x) { return x.rows(rows.begin, rows.end); };
    const Tensor logits = of.capped(products);
    return of.gradient(products, dtype, [&](const Tensor& dlogits) {
      kernels(logits).cross_entropy_backward(
          dlogits, logits, part(lse), part(targets), part(dy), -1, 0,
          {rows.end - rows.begin, columns.end - columns.begin}, {columns.begin, of.classes()});
    });
  }
};

void check_targets(const Tensor& targets, int64_t classes) {
  check(targets.dtype() == DType::i32, "linear_log_probability: targets are {}; expected int32",
        name_of(targets.dtype()));
  const HostValues<int32_t> target(targets);
  for (int64_t i = 0; i < target.size(); ++i)
    check(target[i] < classes,
          "linear_log_probability: target {} at position {}; expected less than {}", target[i], i,
          classes);
}

template <class Weight>
Tensor probabilities_with(const Tensor& x, const Weight& weight, const Tensor& bias,
                          const Tensor& targets, float softcap, LogitBlocks given) {
  check_logit_shapes("linear_log_probability", x, shape_of(weight), bias, targets, softcap);
  const int64_t V = shape_of(weight)[0], R = targets.size(), C = shape_of(weight)[1];
  check_targets(targets, V);
  const LogitBlocks blocks = blocks_of(given, R, weight);
  const RowProbabilities of_rows{targets.view({R}).to(x.device()), statistics(x, {R, V}),
                                 statistics(x, {R, V})};
  const auto logits_of = [=](DType dtype) {
    return BlockedLogits<Weight>{dtype, in_dtype(weight, dtype), bias ? bias.detach() : bias,
                                 softcap};
  };
  const BlockedLogits<Weight> of = logits_of(x.dtype());
  const Tensor rows = x.view({R, C}).detach();
  each_block(R, blocks.rows, [&](int64_t begin, int64_t end) {
    of_rows.forward(of.capped(of.products(rows.rows(begin, end), of.all())), begin, end);
  });
  Tensor y = empty(targets.shape(), working_type(x), x.device());
  kernels(x).scale(y, of_rows.losses, -1, R);

  if (!recording()) return y;
  std::vector<Tensor> inputs = {x, bias};
  if constexpr (kIsDense<Weight>) inputs.push_back(weight);
  return record(
      y, inputs, [=, x = Saved(x), units = row_units()](const Tensor& given_dy, Gradients& d) {
        const Tensor input = x.elements().view({R, C}), dy = given_dy.view({R});
        const BlockedLogits<Weight> again = logits_of(input.dtype());
        const Out dbias = d[bias];
        Out dweight = {};
        if constexpr (kIsDense<Weight>) dweight = d[weight];
        add_gradients_of_weights(dweight, dbias, input, again, blocks, units,
                                 [&](const Tensor& products, Interval columns, DType dtype) {
                                   return of_rows.gradient(again, products, dy, {0, R}, columns,
                                                           dtype);
                                 });
        if (!d.wants(x)) return;
        const Out dx = d[x];
        each_block(R, blocks.rows, [&](int64_t begin, int64_t end) {
          const Tensor products = again.products(input.rows(begin, end), again.all());
          multiply_by_weight(
              at(dx, begin * C),
              of_rows.gradient(again, products, dy, {begin, end}, again.all(), again.operands),
              again);
        });
      });
}

}  // namespace

Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& targets) {
  return linear_log_probability(x, weight, bias, targets, 0);
}

Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& targets, float softcap, LogitBlocks blocks) {
  return probabilities_with(x, weight, bias, targets, softcap, blocks);
}

Tensor linear_log_probability(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                              const Tensor& targets, float softcap, LogitBlocks blocks) {
  return probabilities_with(x, weight, bias, targets, softcap, blocks);
}

}  // namespace fovea
