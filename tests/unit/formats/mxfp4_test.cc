// A directory with MXFP4 weights of experts has the logits of transformers, and its blocks are
// packed as they are stored.

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "checkpoint/mxfp4_tensors.h"
#include "open/directory.h"
#include "open/model_parts.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

constexpr const char* kGolden = "tests/goldens/gpt_oss_mxfp4";

Parameter& parameter_of(Transformer& model, const std::string& wanted) {
  Parameter* found = nullptr;
  model.each([&](const std::string& name, Parameter& p) {
    if (name == wanted) found = &p;
  });
  return *found;
}

TEST(Mxfp4, HasTheLogitsOfTransformers) {
  const ModelFiles files = open_model_files(kGolden, Weights::owned);
  const SafeTensors expected(std::string(kGolden) + "/expected.safetensors");
  const Tensor given = expected.tensor("tokens"), ids = empty(given.shape(), DType::i32);
  for (int64_t i = 0; i < ids.size(); ++i)
    ids.data_as<int32_t>()[i] = static_cast<int32_t>(given.data_as<int64_t>()[i]);
  const NoGradient off;
  Pass pass;
  pass.mask.causal = true;
  const std::vector<float> logits = to_floats(files.model.logits(files.model.hidden(ids, pass)));
  const std::vector<float> wanted = to_floats(expected.tensor("logits"));
  ASSERT_EQ(logits.size(), wanted.size());
  const float largest =
      std::abs(*std::ranges::max_element(wanted, {}, [](float x) { return std::abs(x); }));
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(logits[i], wanted[i], 1e-4 * largest) << i;
}

TEST(Mxfp4, IsPackedAsStored) {
  ModelFiles full = open_model_files(kGolden, Weights::owned);
  ModelFiles packed = open_model_files(kGolden, Weights::packed);
  for (const char* name :
       {"decoder.0.ffn.experts.0.gate.weight", "decoder.1.ffn.experts.2.up.weight",
        "decoder.1.ffn.experts.1.down.weight"}) {
    const PackedWeight& weight = parameter_of(packed.model, name).packed;
    ASSERT_TRUE(weight) << name;
    EXPECT_EQ(weight.matrix().format, WeightFormat::mxfp4) << name;
    EXPECT_EQ(to_floats(weight.floats()), to_floats(parameter_of(full.model, name).value)) << name;
  }
}

// Blocks without scales, or with scales of another shape, are refused by name.
TEST(Mxfp4, ScalesThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const SafeTensors file = SafeTensors::open_model(kGolden);
  std::map<std::string, Tensor> tensors;
  for (const StoredTensor& each : file.stored()) tensors[each.name] = file.tensor(each.name);
  write_file_atomically(folder / "config.json",
                        read_json(std::string(kGolden) + "/config.json").dump());
  const std::string name = "model.layers.0.mlp.experts.down_proj_scales";
  const auto opened = [&] {
    write_safetensors(folder / "model.safetensors", tensors);
    static_cast<void>(open_model_files(folder.path(), Weights::packed));
  };
  tensors[name] = zeros({3, 32, 3}, DType::u8);
  expect_error(ErrorKind::BadFile, {"down_proj_scales U8 [3, 32, 3]", "expected"}, opened);
  tensors.erase(name);
  expect_error(ErrorKind::BadFile, {"down_proj_scales is missing", "expected"}, opened);
}

}  // namespace
}  // namespace fovea::model
