// Tests the options of a trace and the inputs that it refuses. tests/parity compares the traced
// values.

#include "inspect/trace.h"

#include <cmath>

#include "fovea/core/ops.h"
#include "loading/loading.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "unit/inspect/ids.h"

namespace fovea::study {
namespace {

class Trace : public testing::Test {
 protected:
  Trace() {
    model_ = model::Transformer(model::validated(test::small_decoder({.context = 6, .width = 8})));
    model::initialise(model_, 1);
    input_.ids = row({1, 2, 3, 4});
  }
  TraceTensors traced() { return trace_model(model_, model::gpt2, input_); }
  void refused(std::initializer_list<std::string> texts) {
    expect_error(ErrorKind::InvalidArgument, texts, [&] { traced(); });
  }

  model::Transformer model_;
  TraceInput input_;
};

TEST_F(Trace, ReturnsNamesAndShapes) {
  const auto found = traced();
  const std::map<std::string, Shape> expected = {
      {"attention.0", {1, 2, 4, 4}}, {"attention.1", {1, 2, 4, 4}}, {"hidden.0", {1, 4, 8}},
      {"hidden.1", {1, 4, 8}},       {"hidden.2", {1, 4, 8}},       {"logits", {1, 4, 11}},
      {"input_ids", {1, 4}}};
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, shape] : expected) EXPECT_EQ(found.at(name).shape(), shape) << name;
}

TEST_F(Trace, AHookReadsAndReplacesSelectedValues) {
  const Tensor before = traced().at("logits");
  input_.what = {"hidden.1", "logits"};
  std::vector<std::string> seen;
  input_.hook = [&](const std::string& name, Tensor& value) {
    seen.push_back(name);
    if (name == "hidden.1") value = scale(value, 0);
  };
  const auto found = traced();
  EXPECT_EQ(seen, (std::vector<std::string>{"hidden.1", "logits"}));
  for (const float x : to_floats(found.at("hidden.1"))) EXPECT_EQ(x, 0.0f);
  EXPECT_NE(to_floats(found.at("logits")), to_floats(before));
  input_.hook = [](const std::string&, Tensor& value) { value = zeros({1, 2}); };
  refused({"hidden.1: the hook returned", "[1, 2]"});
}

TEST_F(Trace, AttentionIsCausal) {
  const Tensor attention = traced().at("attention.1");
  const float* weights = attention.data_as<float>();
  for (int64_t r = 0; r < 2 * 4; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < 4; ++c) {
      sum += double{weights[r * 4 + c]};
      if (c > r % 4) {
        EXPECT_EQ(weights[r * 4 + c], 0.0f) << r << " " << c;
      }
    }
    EXPECT_NEAR(sum, 1, 1e-6) << r;
  }
}

TEST_F(Trace, GradientsHaveTheNamesOfTheCheckpoint) {
  input_.labels = row({1, 2, -100, 4});
  input_.gradients = true;
  const auto found = traced();
  for (const auto& [name, value] : model::checkpoint_tensors(model_, model::gpt2)) {
    ASSERT_TRUE(found.contains("grad." + name)) << name;
    EXPECT_EQ(found.at("grad." + name).shape(), value.shape()) << name;
  }
  EXPECT_EQ(found.at("loss").size(), 1);
  model_.each([](const std::string& name, model::Parameter& p) {
    EXPECT_FALSE(p.value.gradient()) << name << ": not restored";
  });
}

TEST_F(Trace, IgnoredLabelsGiveNoGradient) {
  input_.labels = row({-100, -100, -100, -100});
  input_.gradients = true;
  for (const auto& [name, value] : traced()) {
    if (!name.starts_with("grad.") && name != "loss") continue;
    for (const float x : to_floats(value)) ASSERT_EQ(x, 0.0f) << name;
  }
}

TEST_F(Trace, ARowOfPaddingGivesFiniteResults) {
  input_.attention_mask = row({0, 0, 0, 0});
  for (const auto& [name, value] : traced()) {
    if (value.dtype() == DType::i32) continue;
    for (const float x : to_floats(value)) ASSERT_TRUE(std::isfinite(x)) << name;
  }
}

TEST_F(Trace, WrongInputsAreNamed) {
  for (const int32_t id : {11, -1, INT32_MAX}) {
    input_.ids = row({1, 2, id});
    refused({"input_ids: ", " at position 2; expected 0 to 10"});
  }
  input_.ids = row({1, 2, 3, 4, 5, 6, 7});
  refused({"7 tokens", "at most 6"});
  input_.ids = zeros({4}, DType::i32);
  refused({"input_ids: shape [4]; expected [B, T]"});
  input_.ids = row({});
  refused({"input_ids: shape [1, 0]"});
}

TEST_F(Trace, WrongLabelsAndMasksAreNamed) {
  for (const int32_t label : {11, -1, -101}) {
    input_.labels = row({1, label, 3, 4});
    refused({"labels: ", " at position 1; expected 0 to 10"});
  }
  input_.labels = row({1, 2});
  refused({"labels: shape [1, 2]; expected [1, 4]"});
  input_.labels = {};
  input_.attention_mask = row({1, 0, 1, 1});
  refused({"attention_mask: row 0 has a gap at 1"});
  input_.attention_mask = row({1});
  refused({"attention_mask: shape [1, 1]; expected [1, 4]"});
}

}  // namespace
}  // namespace fovea::study
