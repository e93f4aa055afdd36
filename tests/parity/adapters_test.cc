// Compares with adapters of PEFT: fovea reads the same adapters, computes the same logits, loss and
// gradients, merges them into the same model, and writes the same files.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "families/adapters.h"
#include "families/save_adapter.h"
#include "fovea/convert.h"
#include "model/adapters.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr double kRelative = 1e-5;

void expect_alike(const Tensor& found, const Tensor& expected, const std::string& name,
                  double tolerance = kRelative) {
  ASSERT_EQ(found.shape(), expected.shape()) << name;
  double worst = 0, most = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double one = found.data_as<float>()[i], other = expected.data_as<float>()[i];
    worst = std::max(worst, std::isnan(one) ? INFINITY : std::abs(one - other));
    most = std::max(most, std::abs(other));
  }
  EXPECT_LE(worst, tolerance * most) << name << ": largest " << most;
}

class Adapters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = shared(std::string("fixtures/align/") + GetParam());
    base_ = shared("fixtures/models/llama");
    if (!std::filesystem::is_directory(folder_)) GTEST_SKIP() << "needs " << folder_;
    expected_.emplace(folder_ + "/expected.safetensors");
  }

  Tensor ids() const { return convert_ids(expected_->tensor("input_ids")); }
  // The label of each token is the next one of the file's labels, which are not shifted.
  Tensor labels() const {
    const Tensor given = convert_ids(expected_->tensor("labels"));
    const Tensor shifted = empty(given.shape(), DType::i32);
    const int64_t T = given.dim(1);
    for (int64_t i = 0; i < given.size(); ++i)
      shifted.data_as<int32_t>()[i] = i % T + 1 < T ? given.data_as<int32_t>()[i + 1] : int32_t{-1};
    return shifted;
  }
  Tensor logits(const Transformer& model) const {
    const NoGradient off;
    return model.logits(model.hidden(ids(), {}));
  }
  ModelFiles open(Weights weights = Weights::mapped, double weight = 1) const {
    return open_model_files(base_, weights, {}, {{folder_, weight}});
  }

  static Tensor convert_ids(const Tensor& given) {
    const Tensor ids = empty(given.shape(), DType::i32);
    for (int64_t i = 0; i < given.size(); ++i)
      ids.data_as<int32_t>()[i] = static_cast<int32_t>(given.data_as<int64_t>()[i]);
    return ids;
  }

  std::string folder_, base_;
  std::optional<SafeTensors> expected_;
  const TemporaryFolder temporary_;
};

TEST_P(Adapters, GiveTheLogitsOfPeft) {
  expect_alike(logits(open().model), expected_->tensor("logits"), "logits");
  expect_alike(logits(open(Weights::packed).model), expected_->tensor("logits"), "packed logits");
}

TEST_P(Adapters, GiveTheLossAndGradientsOfPeft) {
  ModelFiles files = open();
  for (const auto& [name, parameter] : parameters_of(files.model))
    if (parameter->trainable) parameter->value.want_gradient();
  const Tensor loss = files.model.loss(files.model.hidden(ids(), {}), {}, labels());
  const double expected = expected_->tensor("loss").data_as<float>()[0];
  EXPECT_NEAR(number_of(loss), expected, kRelative * expected);
  backward(loss);
  // The tensors of a file whose values are the gradients.
  for (const auto& [name, parameter] : parameters_of(files.model)) {
    if (!parameter->trainable) continue;
    ASSERT_TRUE(parameter->value.gradient()) << name;
    parameter->value = copy(parameter->value.gradient().detach());
  }
  const auto found = adapter_tensors(files.model, *files.origin.family);
  int compared = 0;
  for (const auto& [name, gradient] : found) {
    std::string theirs = "grad." + name;
    if (name.ends_with("_vector")) theirs += ".weight";
    if (expected_->find(theirs) == nullptr)
      theirs = "grad." + name.substr(0, name.rfind('.')) + ".modules_to_save.weight";
    ASSERT_NE(expected_->find(theirs), nullptr) << theirs;
    expect_alike(gradient, expected_->tensor(theirs), theirs);
    ++compared;
  }
  int all = 0;
  for (const StoredTensor& tensor : expected_->stored()) all += tensor.name.starts_with("grad.");
  EXPECT_EQ(compared, all);
}

TEST_P(Adapters, AreMergedAsByPeft) {
  ModelFiles files = open();
  merge_adapters(files.model);
  EXPECT_FALSE(has_adapters(files.model));
  expect_alike(logits(files.model), expected_->tensor("merged.logits"), "merged.logits");
  const std::string out = temporary_ / "merged";
  convert_model(base_, out, {}, {{folder_}});
  const ModelFiles merged = open_model_files(out, Weights::mapped);
  expect_alike(logits(merged.model), expected_->tensor("merged.logits"), "converted");
}

TEST_P(Adapters, AreWrittenAsTheyWereRead) {
  ModelFiles files = open();
  const PeftConfig config(folder_);
  const nlohmann::json given = read_json(config.path());
  save_adapter(temporary_.path(), files.model, files.origin,
               {.base = config.base(),
                .rank = given["r"],
                .alpha = given["lora_alpha"],
                .rslora = config.rslora(),
                .dropout = config.dropout()});
  const SafeTensors before(folder_ + "/" + kAdapterTensors), after(temporary_ / kAdapterTensors);
  ASSERT_EQ(after.stored().size(), before.stored().size());
  for (const StoredTensor& was : before.stored()) {
    const StoredTensor* is = after.find(was.name);
    ASSERT_NE(is, nullptr) << was.name;
    ASSERT_EQ(is->shape, was.shape) << was.name;
    EXPECT_EQ(std::memcmp(is->data, was.data, was.bytes), 0) << was.name;
  }
  const nlohmann::json written = read_json(temporary_ / kAdapterConfig);
  for (const char* key : {"r", "lora_alpha", "use_dora", "use_rslora", "fan_in_fan_out", "bias",
                          "peft_type", "task_type", "rank_pattern", "alpha_pattern"})
    EXPECT_EQ(written[key], given[key]) << key;
  const ModelFiles again = open_model_files(base_, Weights::mapped, {}, {{temporary_.path()}});
  expect_alike(logits(again.model), expected_->tensor("logits"), "logits after writing");
}

TEST_P(Adapters, HaveTheSameLogitsAsGguf) {
  const std::string gguf = temporary_ / "adapter.gguf", name = GetParam();
  const auto converted = [&] { convert_model(base_, gguf, {.adapter_only = true}, {{folder_}}); };
  if (name == "dora" || name == "saved_head") {
    expect_error(ErrorKind::Unsupported, {"llama.cpp"}, converted);
    return;
  }
  converted();
  const ModelFiles files = open_model_files(base_, Weights::mapped, {}, {{gguf}});
  EXPECT_EQ(to_floats(logits(files.model)), to_floats(logits(open().model)));
}

TEST_P(Adapters, AreSummedWithWeights) {
  if (std::string(GetParam()) == "saved_head") return;  // such an adapter has no weights
  const Tensor plain = logits(open_model_files(base_, Weights::mapped).model);
  const auto sum = [&](double one, double other) {
    return logits(
        open_model_files(base_, Weights::mapped, {}, {{folder_, one}, {folder_, other}}).model);
  };
  expect_alike(sum(0.25, 0.75), expected_->tensor("logits"), "parts");
  expect_alike(sum(2, -2), plain, "none");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Adapters,
                         testing::Values("lora", "dora", "lora_qv_rs", "patterns", "saved_head"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fovea
