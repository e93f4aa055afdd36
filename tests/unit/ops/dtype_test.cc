// Compares every op on the fast kernels, in the dtypes of training, with the same op in double on
// the reference kernels.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "unit/kernels/compare.h"
#include "unit/ops/cases.h"

namespace fovea {
namespace {

using test::Array;
using test::Case;

std::vector<Tensor> run(const Case& c, DType dtype) {
  std::vector<Tensor> inputs, results;
  for (const Tensor& x : c.inputs) inputs.push_back(convert(x, dtype).want_gradient());
  Tensor y = c.function(inputs);
  results.push_back(y.detach());
  if (!y.wants_gradient()) return results;
  backward(test::weighted_sum(y));
  for (const Tensor& x : inputs) results.push_back(x.gradient());
  return results;
}

// The backward pass of attention subtracts a term computed from y, which was rounded when it was
// stored, as were its weights: if few keys are visible, the difference consists mainly of rounding
// errors. A gated activation rounds once more than its reference, and adapted_linear rounds the
// product with `down` and its gradient. A recurrence rounds the gradient of each token's gates,
// from which the gradients of earlier tokens follow, and linear_cross_entropy and
// linear_log_probability those of logits.
bool is_rounded_twice(const Case& c, size_t n) {
  const bool backward = c.op == "attention" || c.op == "recurrence" ||
                        c.op == "linear_cross_entropy" || c.op == "linear_log_probability";
  return (backward && n > 0) || c.op == "gated_activation" || c.op == "adapted_linear";
}

testing::AssertionResult close(const Case& c, size_t n, const Array& actual,
                               const Array& expected) {
  const testing::AssertionResult result = test::close(actual, expected);
  if (result || actual.dtype() != DType::bf16 || !is_rounded_twice(c, n)) return result;
  double error = 0, square = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    square += std::pow(expected[i], 2);
  }
  const double most = c.op == "attention" ? 1e-3 : 2e-4;
  return error <= most * square ? testing::AssertionSuccess() : result;
}

Array array_of(const Tensor& x) {
  Array array(x.size(), x.dtype());
  for (int64_t i = 0; i < x.size(); ++i) reference::put(array.out(), i, test::at(x, i));
  return array;
}

class EveryIsa : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_isa(GetParam()); }
  void TearDown() override { use_isa("auto"); }
};

TEST_P(EveryIsa, MatchesTheReferenceInDouble) {
  for (const Case& c : test::cases()) {
    const std::vector<Tensor> expected = run(c, DType::f64);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(fmt::format("{} {} in {}", c.op, c.what, name_of(dtype)));
      const std::vector<Tensor> actual = run(c, dtype);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t n = 0; n < actual.size(); ++n) {
        ASSERT_EQ(actual[n].shape(), expected[n].shape());
        EXPECT_TRUE(close(c, n, array_of(actual[n]), array_of(expected[n]))) << "result " << n;
      }
    }
  }
}

std::vector<std::string> isas() {
  std::vector<std::string> names = testable_isas();
  names.push_back("reference");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryIsa, testing::ValuesIn(isas()), [](const auto& isa) {
  std::string name = isa.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace fovea
