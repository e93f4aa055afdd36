// Compares with an adapter of PEFT on fused experts (target_parameters): the logits with and
// without it. tools/goldens/make_fused_experts.py wrote the goldens.

#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "formats/peft/save.h"
#include "open/directory.h"
#include "open/open_adapters.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

const std::string kFused = "tests/goldens/fused_experts/";

void expect_logits(const model::Transformer& model, const SafeTensors& expected, const char* name) {
  const NoGradient off;
  const Tensor given = expected.tensor("ids"), ids = empty(given.shape(), DType::i32);
  for (int64_t i = 0; i < given.size(); ++i)
    ids.data_as<int32_t>()[i] = static_cast<int32_t>(given.data_as<int64_t>()[i]);
  const Tensor found = model.logits(model.hidden(ids, {})), want = expected.tensor(name);
  ASSERT_EQ(found.shape(), want.shape());
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(found.data_as<float>()[i], want.data_as<float>()[i], 1e-5) << name << ": " << i;
}

TEST(FusedExperts, HaveTheLogitsOfPeft) {
  const SafeTensors expected(kFused + "expected.safetensors");
  expect_logits(model::open_model_files(kFused + "model", model::Weights::mapped).model, expected,
                "base");
  expect_logits(model::open_model_files(kFused + "model", model::Weights::mapped, {},
                                        {{kFused + "adapter", 1}})
                    .model,
                expected, "adapted");
}

// An adapter of PEFT is written as PEFT wrote it.
TEST(FusedExperts, AreWrittenAsPeftWritesThem) {
  const TemporaryFolder folder;
  model::ModelFiles files = model::open_model_files(kFused + "model", model::Weights::owned);
  model::add_stored_adapter(
      files.model, model::read_adapter(kFused + "adapter", *files.origin.family, files.model));
  model::save_adapter(folder.path(), files.model, files.origin,
                      {.base = "../model", .rank = 2, .alpha = 6});
  const SafeTensors found(folder / "adapter_model.safetensors"),
      expected(kFused + "adapter/adapter_model.safetensors");
  ASSERT_EQ(found.stored().size(), expected.stored().size());
  for (const StoredTensor& each : expected.stored()) {
    ASSERT_NE(found.find(each.name), nullptr) << each.name;
    EXPECT_EQ(found.tensor(each.name).shape(), expected.tensor(each.name).shape());
    EXPECT_EQ(to_floats(found.tensor(each.name)), to_floats(expected.tensor(each.name)));
  }
  const nlohmann::json config = read_json(folder / "adapter_config.json"),
                       theirs = read_json(kFused + "adapter/adapter_config.json");
  for (const char* key : {"target_modules", "rank_pattern", "alpha_pattern", "r", "lora_alpha",
                          "lora_dropout", "use_dora", "modules_to_save"})
    EXPECT_EQ(config.at(key), theirs.at(key)) << key;
  EXPECT_EQ(config.at("target_parameters"),
            (std::vector<std::string>{"experts.down_proj", "experts.gate_up_proj"}));
}

TEST(FusedExperts, AreRefusedIfTheConfigDoesNotTargetThem) {
  const TemporaryFolder folder;
  const std::string config = read_file(kFused + "adapter/adapter_config.json"),
                    target = "\"mlp.experts.gate_up_proj\"";
  ASSERT_NE(config.find(target), std::string::npos);
  std::string other = config;
  other.replace(other.find(target), target.size(), "\"mlp.experts.up_proj\"");
  write_file_atomically(folder / "adapter_config.json", other);
  write_file_atomically(folder / "adapter_model.safetensors",
                        read_file(kFused + "adapter/adapter_model.safetensors"));
  expect_error(
      ErrorKind::BadFile, {"adapter_model.safetensors: adapts model.layers.0.mlp.experts"}, [&] {
        model::open_model_files(kFused + "model", model::Weights::mapped, {}, {{folder.path(), 1}});
      });
}

}  // namespace
}  // namespace fovea
