// Compares with adapters of PEFT: fovea reads the same adapters, computes the same logits, loss and
// gradients, merges them into the same model, and writes the same files.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/json.h"
#include "formats/peft/adapters.h"
#include "formats/peft/save.h"
#include "fovea/model/convert.h"
#include "open/directory.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"
#include "transformer/adapters.h"

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
  Tensor logits(const model::Transformer& model) const {
    const NoGradient off;
    return model.logits(model.hidden(ids(), {}));
  }
  model::ModelFiles open(model::Weights weights = model::Weights::mapped, double weight = 1) const {
    return model::open_model_files(base_, weights, {}, {{folder_, weight}});
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
  expect_alike(logits(open(model::Weights::packed).model), expected_->tensor("logits"),
               "packed logits");
}

TEST_P(Adapters, GiveTheLossAndGradientsOfPeft) {
  model::ModelFiles files = open();
  for (const auto& [name, parameter] : model::parameters_of(files.model))
    if (parameter->trainable) parameter->value.want_gradient();
  const Tensor loss = files.model.loss(files.model.hidden(ids(), {}), {}, labels());
  const double expected = expected_->tensor("loss").data_as<float>()[0];
  EXPECT_NEAR(number_of(loss), expected, kRelative * expected);
  backward(loss);
  // The tensors of a file whose values are the gradients.
  for (const auto& [name, parameter] : model::parameters_of(files.model)) {
    if (!parameter->trainable) continue;
    ASSERT_TRUE(parameter->value.gradient()) << name;
    parameter->value = copy(parameter->value.gradient().detach());
  }
  const auto found = model::adapter_tensors(files.model, *files.origin.family);
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
  model::ModelFiles files = open();
  model::merge_adapters(files.model);
  EXPECT_FALSE(model::has_adapters(files.model));
  expect_alike(logits(files.model), expected_->tensor("merged.logits"), "merged.logits");
  const std::string out = temporary_ / "merged";
  model::convert_model(base_, out, {}, {{folder_}});
  const model::ModelFiles merged = model::open_model_files(out, model::Weights::mapped);
  expect_alike(logits(merged.model), expected_->tensor("merged.logits"), "converted");
}

TEST_P(Adapters, AreWrittenAsTheyWereRead) {
  model::ModelFiles files = open();
  const model::PeftConfig config(folder_);
  const nlohmann::json given = read_json(config.path());
  model::save_adapter(temporary_.path(), files.model, files.origin,
                      {.base = config.base(),
                       .rank = given["r"],
                       .alpha = given["lora_alpha"],
                       .rslora = config.rslora(),
                       .dropout = config.dropout()});
  const SafeTensors before(folder_ + "/" + model::kAdapterTensors),
      after(temporary_ / model::kAdapterTensors);
  ASSERT_EQ(after.stored().size(), before.stored().size());
  for (const StoredTensor& was : before.stored()) {
    const StoredTensor* is = after.find(was.name);
    ASSERT_NE(is, nullptr) << was.name;
    ASSERT_EQ(is->shape, was.shape) << was.name;
    EXPECT_EQ(std::memcmp(is->data, was.data, was.bytes), 0) << was.name;
  }
  const nlohmann::json written = read_json(temporary_ / model::kAdapterConfig);
  for (const char* key : {"r", "lora_alpha", "use_dora", "use_rslora", "fan_in_fan_out", "bias",
                          "peft_type", "task_type", "rank_pattern", "alpha_pattern"})
    EXPECT_EQ(written[key], given[key]) << key;
  const model::ModelFiles again =
      model::open_model_files(base_, model::Weights::mapped, {}, {{temporary_.path()}});
  expect_alike(logits(again.model), expected_->tensor("logits"), "logits after writing");
}

TEST_P(Adapters, HaveTheSameLogitsAsGguf) {
  const std::string gguf = temporary_ / "adapter.gguf", name = GetParam();
  const auto converted = [&] {
    model::convert_model(base_, gguf, {.adapter_only = true}, {{folder_}});
  };
  if (name == "dora" || name == "saved_head") {
    expect_error(ErrorKind::Unsupported, {"llama.cpp"}, converted);
    return;
  }
  converted();
  const model::ModelFiles files =
      model::open_model_files(base_, model::Weights::mapped, {}, {{gguf}});
  EXPECT_EQ(to_floats(logits(files.model)), to_floats(logits(open().model)));
}

TEST_P(Adapters, AreSummedWithWeights) {
  if (std::string(GetParam()) == "saved_head") return;  // such an adapter has no weights
  const Tensor plain = logits(model::open_model_files(base_, model::Weights::mapped).model);
  const auto sum = [&](double one, double other) {
    return logits(model::open_model_files(base_, model::Weights::mapped, {},
                                          {{folder_, one}, {folder_, other}})
                      .model);
  };
  expect_alike(sum(0.25, 0.75), expected_->tensor("logits"), "parts");
  expect_alike(sum(2, -2), plain, "none");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Adapters,
                         testing::Values("lora", "dora", "lora_qv_rs", "patterns", "saved_head"),
                         [](const auto& test) { return std::string(test.param); });

// Adapters that target_modules="all-linear", modules_to_save and trainable_token_indices make: they
// change the pooler, the head or the embedding, also where the embedding is the head. They were
// refused. tools/goldens/make_peft.py.
class AdaptersOutsideTheStacks : public testing::Test {
 protected:
  // Calls check(name, base, adapter, logits) for each adapter.
  template <class Check>
  void each(const Check& check) const {
    const nlohmann::json expected = read_json(kFolder + "/expected.json");
    int count = 0;
    for (const auto& [name, logits] : expected["logits"].items()) {
      SCOPED_TRACE(name);
      const std::vector<float> values = logits;
      check(name, kFolder + "/" + name.substr(0, name.find('_')), kFolder + "/" + name, values);
      ++count;
    }
    EXPECT_EQ(count, 14);
  }

  static Tensor logits_of(const model::Transformer& model) {
    const NoGradient off;
    const auto ids = read_json(kFolder + "/expected.json")["ids"].get<std::vector<int32_t>>();
    const Tensor row = empty({1, std::ssize(ids)}, DType::i32);
    std::copy(ids.begin(), ids.end(), row.data_as<int32_t>());
    return model.logits(model.hidden(row, {}));
  }
  static void expect_logits(const model::Transformer& model, const std::vector<float>& expected,
                            const char* how) {
    const Tensor found = logits_of(model);
    expect_alike(found, tensor_of(expected, found.shape()), how);
  }

  static inline const std::string kFolder = "tests/goldens/peft";
  const TemporaryFolder temporary_;
};

TEST_F(AdaptersOutsideTheStacks, GiveTheLogitsOfPeft) {
  each([](const std::string&, const std::string& base, const std::string& adapter,
          const std::vector<float>& expected) {
    for (const model::Weights weights : {model::Weights::mapped, model::Weights::packed})
      expect_logits(model::open_model_files(base, weights, {}, {{adapter}}).model, expected,
                    "logits");
    expect_logits(model::open_model_files(adapter, model::Weights::mapped).model, expected,
                  "its own base");
  });
}

TEST_F(AdaptersOutsideTheStacks, AreMergedAndWritten) {
  each([&](const std::string& name, const std::string& base, const std::string& adapter,
           const std::vector<float>& expected) {
    const std::string merged = temporary_ / (name + ".merged"), again = temporary_ / name;
    model::convert_model(base, merged, {}, {{adapter}});
    expect_logits(model::open_model_files(merged, model::Weights::mapped).model, expected,
                  "merged");
    const auto write = [&] {
      model::convert_model(base, again, {.adapter_only = true}, {{adapter}});
    };
    if (name == "untied_both" || name == "untied_dora_head") {
      expect_error(ErrorKind::InvalidArgument, {"adapts no layer of the stacks"}, write);
    } else {
      write();
      expect_logits(model::open_model_files(base, model::Weights::mapped, {}, {{again}}).model,
                    expected, "again");
    }
    if (!name.starts_with("tied") && !name.starts_with("untied")) return;
    model::convert_model(base, merged + ".gguf", {}, {{adapter}});
    expect_logits(model::open_model_files(merged + ".gguf", model::Weights::mapped).model, expected,
                  "GGUF");
  });
}

TEST_F(AdaptersOutsideTheStacks, AreWeightedUnlessTheyReplaceValues) {
  const std::string base = kFolder + "/untied", adapter = kFolder + "/untied_both";
  const auto opened = [&](double one, double other) {
    return model::open_model_files(base, model::Weights::mapped, {},
                                   {{adapter, one}, {adapter, other}});
  };
  expect_alike(
      logits_of(opened(0.25, 0.75).model),
      logits_of(model::open_model_files(base, model::Weights::mapped, {}, {{adapter}}).model),
      "parts");
  expect_alike(logits_of(opened(2, -2).model),
               logits_of(model::open_model_files(base, model::Weights::mapped).model), "none");
  expect_error(ErrorKind::InvalidArgument, {"untied_tokens", "modules_to_save", "weight is 0.5"},
               [&] {
                 model::open_model_files(base, model::Weights::mapped, {},
                                         {{kFolder + "/untied_tokens", 0.5}});
               });
  expect_error(ErrorKind::InvalidArgument,
               {"tied_tokens", "tied_head", "expected adapters that agree"}, [&] {
                 model::open_model_files(kFolder + "/tied", model::Weights::mapped, {},
                                         {{kFolder + "/tied_tokens"}, {kFolder + "/tied_head"}});
               });
}

// A server's base shares its weights, which such an adapter changes.
TEST_F(AdaptersOutsideTheStacks, AreNoAdaptersOfASharedBase) {
  const model::Model base = model::Model::open(kFolder + "/untied");
  expect_error(ErrorKind::Unsupported,
               {"untied_both", "changes embedding.token", "weights are shared"},
               [&] { base.with_adapters({{kFolder + "/untied_both"}}); });
}

}  // namespace
}  // namespace fovea
