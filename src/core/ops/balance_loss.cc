#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Returns the factors of the probabilities in the loss: E * (choices of the expert / rows) / rows;
// 0 in rows that are not valid. Counts on the host.
Tensor factors(const Tensor& experts, const Tensor& valid, Rows r, DType dtype) {
  const auto counts = [&](int64_t row) { return !valid || valid.data_as<int32_t>()[row] != 0; };
  const int64_t k = experts.dim(1);
  std::vector<double> chosen(static_cast<size_t>(r.width));
  double rows = 0;
  for (int64_t row = 0; row < r.count; ++row) {
    rows += counts(row) ? 1 : 0;
    for (int64_t j = row * k; j < (row + 1) * k; ++j) {
      const int32_t expert = experts.data_as<int32_t>()[j];
      check(expert >= 0 && expert < r.width,
            "balance_loss: expert {} at position {}; expected 0 to {}", expert, j, r.width - 1);
      chosen[static_cast<size_t>(expert)] += counts(row) ? 1 : 0;
    }
  }
  const double factor = rows == 0 ? 0 : static_cast<double>(r.width) / (rows * rows);
  Tensor all = zeros({r.count, r.width}, DType::f64);
  for (int64_t i = 0; i < all.size(); ++i) {
    if (counts(i / r.width))
      all.data_as<double>()[i] = factor * chosen[static_cast<size_t>(i % r.width)];
  }
  return convert(all, dtype);
}

}  // namespace

Tensor balance_loss(const Tensor& probabilities, const Tensor& experts, const Tensor& valid) {
  check(probabilities.rank() == 2 && experts.rank() == 2 && experts.dtype() == DType::i32 &&
            experts.dim(0) == probabilities.dim(0),
        "balance_loss: probabilities are {}, experts {} {}; expected [R, E] and int32 [R, k]",
        probabilities.shape(), name_of(experts.dtype()), experts.shape());
  check(!valid || (valid.dtype() == DType::i32 && valid.shape() == Shape{probabilities.dim(0)}),
        "balance_loss: valid is {} {}, probabilities are {}; expected int32 [R]",
        name_of(valid.dtype()), valid.shape(), probabilities.shape());
  const Tensor factor = factors(experts.to(cpu_device()), valid.to(cpu_device()),
                                rows_of(probabilities), working_type(probabilities))
                            .to(probabilities.device());
  const Kernels& k = kernels(factor);
  const Tensor products = multiply(cast(probabilities.detach(), factor.dtype()), factor);
  Tensor loss = full({1}, k.sum(products, products.size()), factor.dtype());
  return record(
      loss, {probabilities}, [=, p = Saved::slot(probabilities)](const Tensor& dy, Gradients& d) {
        kernels(factor).scale(d[p], factor, static_cast<float>(number_of(dy)), factor.size());
      });
}

}  // namespace fovea
