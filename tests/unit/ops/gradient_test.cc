#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "base/files.h"
#include "unit/ops/cases.h"

namespace fovea {
namespace {

using test::Case;

// Returns the names of the functions that the headers of ops declare.
std::set<std::string> declared_ops() {
  std::filesystem::path folder = std::filesystem::current_path();
  while (!std::filesystem::exists(folder / "src/core/ops/ops.h") && folder.has_relative_path())
    folder = folder.parent_path();
  std::string text;
  for (const char* header :
       {"include/fovea/core/ops.h", "src/core/ops/ops.h", "src/core/ops/largest_products.h"})
    text += read_file((folder / header).string(), 1 << 20);
  const std::regex declaration(R"(\n(?:Tensor|Routing) (\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

TEST(OpCases, CoverEveryOp) {
  std::set<std::string> covered;
  for (const Case& c : test::cases()) covered.insert(c.op);
  EXPECT_EQ(covered, declared_ops());
}

TEST(Gradient, MatchesCentralDifferences) {
  for (const Case& c : test::cases()) {
    if (!c.differentiable) continue;
    SCOPED_TRACE(c.op + " " + c.what);
    test::check_gradients(c.inputs, c.function);
  }
}

TEST(Gradient, IsNotRecordedByNondifferentiableOps) {
  for (const Case& c : test::cases()) {
    if (c.differentiable) continue;
    std::vector<Tensor> inputs = c.inputs;
    for (Tensor& x : inputs) x.want_gradient();
    EXPECT_FALSE(c.function(inputs).wants_gradient());
  }
}

// The gradient of an input does not depend on which other inputs require gradients. It is added
// to an existing gradient.
TEST(Gradient, IsIndependentOfOtherInputs) {
  for (const Case& c : test::cases()) {
    if (!c.differentiable) continue;
    SCOPED_TRACE(c.op + " " + c.what);
    std::vector<Tensor> inputs = c.inputs;
    const std::vector<Tensor> together = test::gradients(inputs, c.function);
    for (size_t n = 0; n < inputs.size(); ++n) {
      std::vector<Tensor> alone;
      for (const Tensor& x : c.inputs) alone.push_back(x.detach());
      alone[n].want_gradient();
      for (int call = 0; call < 2; ++call) backward(test::weighted_sum(c.function(alone)));
      const Tensor twice = alone[n].gradient();
      for (int64_t i = 0; i < alone[n].size(); ++i) {
        const double once = test::at(together[n], i);
        ASSERT_NEAR(twice ? test::at(twice, i) : 0, 2 * once, 1e-12 * (1 + std::abs(once)))
            << "input " << n << ", element " << i;
      }
    }
  }
}

TEST(Gradient, AllowsSharedInputsOfAttention) {
  const Tensor x = test::normal({2, 5, 3, 4}, 1);
  test::check_gradients({x}, [](auto& in) { return attention(in[0], in[0], in[0], {}); });
  test::check_gradients({x, test::normal({2, 5, 3, 4}, 2)},
                        [](auto& in) { return attention(in[1], in[0], in[0], {}); });
}

TEST(Gradient, PassesThroughCasts) {
  for (const DType from : {DType::f64, DType::f32, DType::bf16}) {
    for (const DType to : {DType::f64, DType::f32, DType::bf16}) {
      std::vector<Tensor> inputs{convert(test::normal({3, 5}, 1), from)};
      const auto direct = test::gradients(inputs, [&](auto& in) { return cast(in[0], to); });
      const auto twice = test::gradients(
          inputs, [&](auto& in) { return cast(add(cast(in[0], to), cast(in[0], to)), from); });
      EXPECT_EQ(direct[0].dtype(), from);
      for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(test::at(twice[0], i), 2 * test::at(direct[0], i));
    }
  }
}

// A chain of recomputed outputs must give the same gradients as stored outputs.
TEST(Recompute, GivesTheSameGradients) {
  const std::vector<Tensor> inputs{test::normal({5, 7}, 1), test::normal({7}, 2),
                                   test::normal({7}, 3), test::normal({3, 7}, 4)};
  const auto chain = [](const std::vector<Tensor>& in, bool recipes) {
    // Multiplying by 1 stores the result, which then needs no recomputation.
    const auto keep = [&](const Tensor& y) {
      return recipes ? y : multiply(y, full(y.shape(), 1, y.dtype()));
    };
    const DType dtype = in[0].dtype();
    const Tensor a = keep(layer_norm(in[0], in[1], in[2], 1e-5f, dtype));
    const Tensor b = keep(activation(a, Activation::gelu));
    const Tensor c = keep(rms_norm(b.view({7, 5}).view({5, 7}), in[1], 1e-5f, dtype));
    return multiply(linear(c, in[3]), linear(activation(c, Activation::silu), in[3]));
  };
  test::check_gradients(inputs, [&](auto& in) { return chain(in, true); });
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    std::vector<Tensor> typed;
    for (const Tensor& x : inputs) typed.push_back(convert(x, dtype));
    const auto with = test::gradients(typed, [&](auto& in) { return chain(in, true); });
    const auto without = test::gradients(typed, [&](auto& in) { return chain(in, false); });
    for (size_t n = 0; n < typed.size(); ++n)
      EXPECT_EQ(to_floats(with[n]), to_floats(without[n])) << name_of(dtype) << ", input " << n;
  }
}

TEST(Recompute, FreesNormAndActivationOutputs) {
  Tensor x = zeros({1000, 64}), weight = full({64}, 1);
  x.want_gradient();
  weight.want_gradient();
  const size_t live = tensor_memory().live;
  {
    const Tensor y = activation(layer_norm(x, weight, {}, 1e-5f, DType::f32), Activation::gelu);
    // Only y, two numbers per row, and remainders of blocks that are too small to be split stay
    // allocated.
    EXPECT_LT(tensor_memory().live, live + y.bytes() + 3 * 4096);
    backward(test::weighted_sum(multiply(y, y)));
  }
  EXPECT_TRUE(x.gradient());
}

}  // namespace
}  // namespace fovea
