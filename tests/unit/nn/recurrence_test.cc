#include "nn/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "support/expect_error.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// PyTorch computed the goldens (tools/make_recurrent_goldens.py).
class Recurrences : public testing::TestWithParam<MixerKind> {
 protected:
  static constexpr const char* kNames[] = {"attention", "rnn", "gru", "lstm"};
  nlohmann::json golden_ =
      read_json("tests/goldens/recurrent.json")[kNames[static_cast<int>(GetParam())]];

  Tensor golden(const std::string& name) const {
    const nlohmann::json& entry = golden_[name];
    Shape shape;
    for (const int64_t size : entry["shape"]) shape.push_back(size);
    return from(entry["values"].get<std::vector<float>>(), shape);
  }

  Recurrence layer() const {
    StackSpec stack;
    stack.layers = 1;
    stack.mixers = {GetParam()};
    stack.recurrence = {.width = 5};
    Recurrence layer(stack, 5, 0);
    layer.input = Linear(3, gates_of(layer.cell) * 5, true);
    layer.input.weight.value = golden("weight_ih_l0");
    layer.input.bias.value = golden("bias_ih_l0");
    layer.hidden.weight.value = golden("weight_hh_l0");
    layer.hidden.bias.value = golden("bias_hh_l0");
    return layer;
  }

  static void expect_near(const Tensor& actual, const Tensor& expected) {
    const std::vector<float> a = to_floats(actual), b = to_floats(expected);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-6f * std::max(1.0f, std::abs(b[i]))) << i;
  }
};

TEST_P(Recurrences, MatchPyTorch) {
  Recurrence layer = this->layer();
  Tensor x = golden("x");
  x.want_gradient();
  const auto want = [](const std::string&, Parameter& p) { p.value.want_gradient(); };
  layer.each(want, "x");
  const Tensor y = layer(x, {});
  expect_near(y, golden("y"));
  backward(sum(multiply(y, golden("dy"))));
  expect_near(x.gradient(), golden("dx"));
  expect_near(layer.input.weight.value.gradient(), golden("dweight_ih_l0"));
  expect_near(layer.input.bias.value.gradient(), golden("dbias_ih_l0"));
  expect_near(layer.hidden.weight.value.gradient(), golden("dweight_hh_l0"));
  expect_near(layer.hidden.bias.value.gradient(), golden("dbias_hh_l0"));
}

TEST_P(Recurrences, RefuseAnAdapterThatWouldHaveNoEffect) {
  Recurrence layer = this->layer();
  add_adapter(layer.hidden, {.rank = 2});
  expect_error(ErrorKind::InvalidArgument, {"hidden matrix", "adapter"},
               [&] { layer(golden("x"), {}); });
}

INSTANTIATE_TEST_SUITE_P(Cells, Recurrences,
                         testing::Values(MixerKind::rnn, MixerKind::gru, MixerKind::lstm));

}  // namespace
}  // namespace fovea
