#include "fovea/infer/embed.h"

#include "unit/c/support.h"

namespace fovea {
namespace {

constexpr const char* kSentenceModel = "tests/goldens/sentence_model";

class CEmbedder : public testing::Test {
 protected:
  CEmbedder() {
    EXPECT_EQ(fovea_embedder_open(kSentenceModel, nullptr, &embedder_), FOVEA_OK) << fovea_error();
  }
  ~CEmbedder() override { fovea_embedder_free(embedder_); }
  fovea_embedder* embedder_ = nullptr;
};

TEST_F(CEmbedder, ComputesTheSameBitsAsInCpp) {
  const char* const texts[] = {"hello world", "hello and more"};
  const size_t sizes[] = {FOVEA_NUL_TERMINATED, 5};
  const infer::Embedder same = infer::Embedder::open(kSentenceModel);
  ASSERT_EQ(fovea_embedder_width(embedder_), same.width());
  std::vector<float> values(static_cast<size_t>(2 * same.width()));
  ASSERT_EQ(fovea_embedder_embed(embedder_, texts, sizes, 2, nullptr, values.data(), values.size()),
            FOVEA_OK)
      << fovea_embedder_error(embedder_);
  EXPECT_EQ(values, same.embed({"hello world", "hello"}).values);

  fovea_embed_options options;
  ASSERT_EQ(fovea_embed_options_init(&options, sizeof options), FOVEA_OK);
  options.dimensions = 2;
  options.normalise = 0;
  options.prompt = "query: ";
  values.resize(2);
  ASSERT_EQ(fovea_embedder_embed(embedder_, texts, nullptr, 1, &options, values.data(), 2),
            FOVEA_OK)
      << fovea_embedder_error(embedder_);
  infer::EmbedOptions theirs;
  theirs.dimensions = 2;
  theirs.normalise = false;
  theirs.prompt = "query: ";
  EXPECT_EQ(values, same.embed({"hello world"}, theirs).values);
}

TEST_F(CEmbedder, RefusesASmallMatrix) {
  const char* const texts[] = {"hello"};
  float value = 7;
  EXPECT_EQ(fovea_embedder_embed(embedder_, texts, nullptr, 1, nullptr, &value, 1),
            FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_embedder_error(embedder_), "capacity: 1 floats; expected 1 texts of");
  EXPECT_EQ(value, 7);
  EXPECT_EQ(fovea_embedder_embed(embedder_, texts, nullptr, SIZE_MAX, nullptr, &value, 1),
            FOVEA_INVALID_ARGUMENT);
}

TEST_F(CEmbedder, RefusesNull) {
  const char* const texts[] = {nullptr};
  std::vector<float> values(1000);
  EXPECT_EQ(fovea_embedder_embed(embedder_, texts, nullptr, 1, nullptr, values.data(), 1000),
            FOVEA_INVALID_ARGUMENT);
  expect_message(fovea_embedder_error(embedder_), "texts: NULL");
  EXPECT_EQ(fovea_embedder_embed(embedder_, nullptr, nullptr, 1, nullptr, values.data(), 1000),
            FOVEA_INVALID_ARGUMENT);
  const char* const hello[] = {"hello"};
  EXPECT_EQ(fovea_embedder_embed(embedder_, hello, nullptr, 1, nullptr, nullptr, 1000),
            FOVEA_INVALID_ARGUMENT);
  EXPECT_EQ(fovea_embedder_embed(embedder_, nullptr, nullptr, 0, nullptr, nullptr, 0), FOVEA_OK);
}

TEST_F(CEmbedder, SharesWeightsWithAnotherHandle) {
  fovea_embedder* other = nullptr;
  ASSERT_EQ(fovea_embedder_share(embedder_, &other), FOVEA_OK);
  EXPECT_EQ(fovea_embedder_width(other), fovea_embedder_width(embedder_));
  EXPECT_EQ(fovea_embedder_warning(other, 1000), nullptr);
  fovea_embedder_free(other);
}

}  // namespace
}  // namespace fovea
