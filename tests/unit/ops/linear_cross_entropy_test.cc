// The loss and the gradients of linear_cross_entropy() have the bits of the ops that it replaces.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "support/gradient_check.h"
#include "support/top_probabilities.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

struct Problem {
  int64_t rows, width, classes;
  RowUnits units;
};

std::vector<Problem> problems() {
  const auto starts = [](std::vector<int64_t> of) {
    return RowUnits{std::ssize(of) - 1, std::make_shared<const std::vector<int64_t>>(of)};
  };
  return {{1, 1, 1, {}},
          {7, 5, 19, {}},
          {130, 33, 300, {2, nullptr}},
          {130, 40, 131, starts({0, 1, 1, 100, 130})},
          {96, 64, 257, {3, nullptr}}};
}

struct Results {
  double loss = 0;
  std::vector<std::vector<float>> gradients;  // of x, the weight and the bias
  bool operator==(const Results&) const = default;
};

Tensor targets_of(const Problem& problem) {
  Tensor targets = empty({problem.rows}, DType::i32);
  for (int64_t i = 0; i < problem.rows; ++i)
    targets.data_as<int32_t>()[i] =
        i % 5 == 3 ? -1 : static_cast<int32_t>(i * 37 % problem.classes);
  return targets;
}

// Returns a loss with probabilities of up to 5 classes; some rows have none.
Distillation distillation_of(const Problem& problem) {
  const Tensor teacher = test::normal({problem.rows, problem.classes}, 4, 2);
  const TopProbabilities p =
      test::top_probabilities(teacher, std::min<int64_t>(5, problem.classes), 1.5);
  for (int64_t r = 3; r < problem.rows; r += 7) test::ignore_row(p, r);
  return {test::for_dtype(p, DType::f32), 1.5f, 0.7f};
}

// Calls loss(x, weight, bias) and backward() `calls` times; the calls add to the gradients.
template <class Loss>
Results results_of(const Problem& problem, DType compute, bool with_bias, float factor, int calls,
                   const Loss& loss) {
  const auto leaf = [](Shape shape, uint64_t seed, DType dtype) {
    return convert(test::normal(std::move(shape), seed), dtype).want_gradient();
  };
  const Tensor x = leaf({problem.rows, problem.width}, 1, compute);
  const Tensor weight = leaf({problem.classes, problem.width}, 2, DType::f32);
  const Tensor bias = with_bias ? leaf({problem.classes}, 3, DType::f32) : Tensor();
  const UnitScope units(problem.units);
  Results results;
  for (int call = 0; call < calls; ++call) {
    const Tensor y = loss(x, weight, bias);
    results.loss = number_of(y);
    backward(y, factor);
  }
  for (const Tensor& input : {x, weight, bias})
    if (input) results.gradients.push_back(to_floats(input.gradient()));
  return results;
}

void expect_same_bits(const Problem& problem, DType compute, const LossOptions& given) {
  const Tensor targets = targets_of(problem);
  for (const bool with_bias : {false, true}) {
    for (const auto& [factor, calls] : {std::pair{1.0f, 1}, {1.0f, 2}, {0.37f, 1}}) {
      const Results expected = results_of(
          problem, compute, with_bias, factor, calls,
          [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
            const Tensor logits = linear(x, weight, bias, DType::f32);
            return cross_entropy(given.softcap > 0 ? softcap(logits, given.softcap) : logits,
                                 targets, given);
          });
      for (const LogitBlocks blocks : {LogitBlocks{}, LogitBlocks{1, 1}, LogitBlocks{3, 64},
                                       LogitBlocks{64, 100}, LogitBlocks{1000, 7}}) {
        LossOptions options = given;
        options.blocks = blocks;
        const Results found =
            results_of(problem, compute, with_bias, factor, calls,
                       [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
                         return linear_cross_entropy(x, weight, bias, targets, options);
                       });
        EXPECT_TRUE(found == expected)
            << "blocks of " << blocks.rows << " rows, " << blocks.columns << " columns, bias "
            << with_bias << ", factor " << factor << ", calls " << calls;
      }
    }
  }
}

class LinearCrossEntropy : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_isa(GetParam()); }
  void TearDown() override { use_isa("auto"); }
};

TEST_P(LinearCrossEntropy, HasTheBitsOfItsParts) {
  for (const Problem& problem : problems()) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      const Distillation distillation = distillation_of(problem);
      for (const LossOptions& options :
           {LossOptions{}, LossOptions{.divisor = 3.5, .smoothing = 0.1f},
            LossOptions{.softcap = 2}, LossOptions{.divisor = 7, .smoothing = 0.3f, .softcap = 5},
            LossOptions{.divisor = 7, .distillation = &distillation, .softcap = 5}}) {
        SCOPED_TRACE(testing::Message()
                     << problem.rows << " rows, width " << problem.width << ", " << problem.classes
                     << " classes, " << name_of(compute) << ", smoothing " << options.smoothing
                     << ", softcap " << options.softcap);
        expect_same_bits(problem, compute, options);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, LinearCrossEntropy, testing::ValuesIn(testable_isas()),
                         [](const auto& isa) {
                           std::string name = isa.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(LogitBlocks, AreOfBoundedSize) {
  for (const int64_t classes : {1, 65, 50257, 128256, 1'000'000}) {
    for (const int64_t rows : {1, 1000, 12288, 1'000'000}) {
      const LogitBlocks blocks = logit_blocks(rows, classes);
      EXPECT_GE(blocks.rows, 64);
      EXPECT_GE(blocks.columns, 64);
      EXPECT_LE(blocks.rows * classes, std::max(kLogitsOfBlock, 64 * classes));
      EXPECT_LE(blocks.columns * rows, std::max(kLogitsOfBlock, 64 * rows));
      EXPECT_EQ(blocks.columns % 64, 0);
    }
  }
}

}  // namespace
}  // namespace fovea
