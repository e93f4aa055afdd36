// The log-probabilities and gradients of linear_log_probability() have the bits of the ops that it
// replaces.

#include <gtest/gtest.h>

#include "ops/ops.h"
#include "support/gradient_check.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

struct LogProbabilityResults {
  std::vector<float> values;
  std::vector<std::vector<float>> gradients;  // of x, the weight and the bias
  bool operator==(const LogProbabilityResults&) const = default;
};

// Each row has another factor in the loss.
template <class Probabilities>
LogProbabilityResults results_with(DType compute, bool with_bias,
                                   const Probabilities& probabilities) {
  constexpr int64_t kRows = 130, kWidth = 40, kClasses = 300;
  const auto leaf = [](Shape shape, uint64_t seed, DType dtype) {
    return convert(test::normal(std::move(shape), seed), dtype).want_gradient();
  };
  const Tensor x = leaf({kRows, kWidth}, 1, compute),
               weight = leaf({kClasses, kWidth}, 2, DType::f32);
  const Tensor bias = with_bias ? leaf({kClasses}, 3, DType::f32) : Tensor();
  const Tensor targets = empty({kRows}, DType::i32);
  for (int64_t i = 0; i < kRows; ++i)
    targets.data_as<int32_t>()[i] = i % 5 == 3 ? -1 : static_cast<int32_t>(i * 37 % kClasses);
  LogProbabilityResults results;
  for (int call = 0; call < 2; ++call) {
    const Tensor y = probabilities(x, weight, bias, targets);
    results.values = to_floats(y);
    backward(sum(multiply(y, convert(test::normal({kRows}, 4), DType::f32))));
  }
  for (const Tensor& input : {x, weight, bias})
    if (input) results.gradients.push_back(to_floats(input.gradient()));
  return results;
}

TEST(LinearLogProbability, HasTheBitsOfItsParts) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const bool with_bias : {false, true}) {
      for (const float cap : {0.0f, 3.0f}) {
        const LogProbabilityResults expected = results_with(
            compute, with_bias,
            [&](const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets) {
              const Tensor logits = linear(x, weight, bias, DType::f32);
              return log_probability(cap > 0 ? softcap(logits, cap) : logits, targets);
            });
        for (const LogitBlocks blocks :
             {LogitBlocks{}, LogitBlocks{1, 1}, LogitBlocks{64, 100}, LogitBlocks{1000, 7}}) {
          const LogProbabilityResults found =
              results_with(compute, with_bias,
                           [&](const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const Tensor& targets) {
                             return linear_log_probability(x, weight, bias, targets, cap, blocks);
                           });
          EXPECT_TRUE(found == expected)
              << name_of(compute) << ", bias " << with_bias << ", cap " << cap << ", blocks of "
              << blocks.rows << " rows, " << blocks.columns << " columns";
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea
