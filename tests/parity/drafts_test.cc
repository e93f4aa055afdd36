// Models of many families serve as draft models for one another; the result never depends on the
// draft model.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "fovea/infer/generate.h"
#include "support/shared_folder.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;

class DraftsOfFamilies : public ::testing::TestWithParam<const char*> {};

void expect_same_with_drafts(const model::Model& model, const std::vector<std::string>& drafts) {
  const Ids prompt{84, 104, 101, 32, 101, 121, 101, 32, 111, 102, 32, 97};
  for (const float temperature : {0.0f, 1.0f}) {
    infer::GenerateOptions options;
    options.sampling.temperature = temperature;
    options.sampling.seed = 5;
    options.max_tokens = 40;
    options.ignore_end = true;
    options.speculative_tokens = 0;
    const std::vector<infer::Generation> alone = infer::generate(model, prompt, options);
    options.speculative_tokens = -1;
    EXPECT_EQ(infer::generate(model, prompt, options)[0].ids, alone[0].ids);
    options.speculative_tokens = 3;
    for (const std::string& family : drafts) {
      const model::Model draft =
          model::Model::open(shared("fixtures/models/" + family), model::WeightPrecision::stored);
      const std::vector<infer::Generation> found =
          infer::generate(model, prompt, options, {}, &draft);
      EXPECT_EQ(found[0].ids, alone[0].ids) << family;
      EXPECT_GT(found[0].speculative_tokens, 0) << family;
    }
    const std::vector<infer::Generation> own = infer::generate(model, prompt, options, {}, &model);
    EXPECT_EQ(own[0].ids, alone[0].ids);
    // Rotations may depend on the length of the text; the keys of the draft model are then rotated
    // slightly differently.
    EXPECT_GE(own[0].accepted_tokens * 10, own[0].speculative_tokens * 9);
  }
}

TEST_P(DraftsOfFamilies, DoNotChangeTheResult) {
  if (!std::filesystem::is_directory(shared(std::string("fixtures/models/") + GetParam())))
    GTEST_SKIP() << "needs the reference fixtures (FOVEA_SHARED)";
  const model::Model model = model::Model::open(
      shared(std::string("fixtures/models/") + GetParam()), model::WeightPrecision::stored);
  if (model.spec().encoder) return expect_same_with_drafts(model, {"t5", "bart", "marian"});
  expect_same_with_drafts(model, {"gpt2", "qwen2", "bloom", "mistral"});
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DraftsOfFamilies,
                         ::testing::Values("gpt2", "gpt_neox", "opt", "bloom", "llama", "mistral",
                                           "mixtral", "qwen2", "qwen3_moe", "gemma2", "gemma3_text",
                                           "phi3", "olmo2", "t5", "bart", "marian"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace fovea
