#include "nn/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/threads.h"
#include "fovea/core/random.h"
#include "nn/adapted_linear.h"
#include "support/expect_error.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

// PyTorch computed the goldens (tools/goldens/make_recurrent.py).
class Recurrences : public testing::TestWithParam<MixerKind> {
 protected:
  static constexpr const char* kNames[] = {"attention", "rnn", "gru", "lstm"};
  nlohmann::json golden_ =
      read_json("tests/goldens/recurrent.json")[kNames[static_cast<int>(GetParam())]];

  Tensor golden(const std::string& name) const {
    const nlohmann::json& entry = golden_[name];
    Shape shape;
    for (const int64_t size : entry["shape"]) shape.push_back(size);
    return tensor_of(entry["values"].get<std::vector<float>>(), shape);
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

// Enough sequences are divided among threads, each of which passes through all tokens.
TEST_P(Recurrences, HaveTheSameBitsForAnyNumberOfThreads) {
  const int before = thread_count();
  std::vector<std::vector<float>> found;
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    for (const DType compute : {DType::f32, DType::bf16}) {
      Recurrence layer = this->layer();
      const int64_t B = 25, T = 4;
      Random random(1, Stream::init);
      Tensor x = empty({B, T, 3});
      for (int64_t i = 0; i < x.size(); ++i) x.data_as<float>()[i] = random.normal();
      x.want_gradient();
      const auto want = [](const std::string&, Parameter& p) { p.value.want_gradient(); };
      layer.each(want, "x");
      Pass pass;
      pass.compute = compute;
      const Tensor y = layer(convert(x, compute), pass);
      backward(sum(multiply(y, y)));
      found.push_back(to_floats(y));
      found.push_back(to_floats(x.gradient()));
      found.push_back(to_floats(layer.hidden.weight.value.gradient()));
    }
  }
  set_threads(before);
  for (size_t i = 6; i < found.size(); ++i) EXPECT_EQ(found[i], found[i % 6]) << i;
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
}  // namespace fovea::model
