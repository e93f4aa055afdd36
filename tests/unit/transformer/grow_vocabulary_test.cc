#include "transformer/grow_vocabulary.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/random_parameters.h"
#include "support/small_spec.h"

namespace fovea::model {
namespace {

TEST(GrowVocabulary, AddsMeanRowsToTheEmbeddingAndTheHead) {
  for (const bool tied : {true, false}) {
    Spec spec = test::small_decoder({.vocabulary = 5, .width = 4});
    spec.head.tied = tied;
    Transformer model(validated(spec));
    test::randomise(model, 1);
    const int64_t others = parameter_count(model);
    const std::vector<float> before = to_floats(model.token_embedding.value);
    grow_vocabulary(model, 5, 5);
    EXPECT_EQ(parameter_count(model), others);
    grow_vocabulary(model, 7, 5);
    EXPECT_EQ(model.spec.vocabulary, 7);
    EXPECT_EQ(parameter_count(model), others + (tied ? 1 : 2) * 2 * 4);
    const std::vector<float> after = to_floats(model.token_embedding.value);
    ASSERT_EQ(after.size(), 28u);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    for (size_t c = 0; c < 4; ++c) {
      double sum = 0;
      for (size_t r = 0; r < 5; ++r) sum += before[r * 4 + c];
      EXPECT_FLOAT_EQ(after[20 + c], static_cast<float>(sum / 5));
      EXPECT_EQ(after[24 + c], after[20 + c]);
    }
    expect_error(ErrorKind::InvalidArgument, {"vocabulary: 6 tokens; expected at least the 7"},
                 [&] { grow_vocabulary(model, 6, 6); });
    // The rows exist, but belong to no token.
    grow_vocabulary(model, 7, 2);
    const std::vector<float> again = to_floats(model.token_embedding.value);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + 8, again.begin()));
    EXPECT_FLOAT_EQ(again[2 * 4], (before[0] + before[4]) / 2);
    EXPECT_EQ(again[6 * 4], again[2 * 4]);
  }
}

}  // namespace
}  // namespace fovea::model
