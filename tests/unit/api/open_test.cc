// One function that says what a model is for, and opens it.

#include "fovea/open.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

class Open : public testing::Test {
 protected:
  // Saves a model of these heads, and returns its directory.
  std::string saved(const std::string& name, model::Spec spec) {
    write_file_atomically(folder_ / "text.txt", "to be or not to be");
    const text::Tokenizer tokenizer =
        train::train_tokenizer({folder_ / "text.txt"}, {.kind = text::TokenizerKind::character})
            ->tokenizer;
    spec.vocabulary = 0;
    model::Model::create(spec, tokenizer, 1).save(folder_ / name);
    return folder_ / name;
  }
  static model::Spec with_head(model::HeadKind kind, int64_t labels) {
    model::Spec spec = test::small_encoder();
    spec.head.kind = kind;
    spec.head.labels = labels;
    return spec;
  }

  TemporaryFolder folder_;
};

TEST_F(Open, ChoosesTheClassByTheUse) {
  struct Case {
    const char* name;
    model::Spec spec;
    ModelUse use;
    size_t index;  // of AnyModel
  };
  const Case cases[] = {{"decoder", test::small_decoder(), ModelUse::text, 0},
                        {"translator", test::small_encoder_decoder(), ModelUse::text, 0},
                        {"vectors", with_head(model::HeadKind::pooled, 0), ModelUse::vectors, 1},
                        {"scores", with_head(model::HeadKind::sequence, 1), ModelUse::scores, 4},
                        {"labels", with_head(model::HeadKind::sequence, 3), ModelUse::labels, 5},
                        {"entities", with_head(model::HeadKind::token, 3), ModelUse::entities, 5},
                        {"answers", with_head(model::HeadKind::span, 2), ModelUse::answers, 5}};
  for (const Case& each : cases) {
    const std::string path = saved(each.name, each.spec);
    EXPECT_EQ(model_use(path), each.use) << each.name;
    EXPECT_EQ(open(path, model::WeightPrecision::full).index(), each.index) << each.name;
  }
}

TEST_F(Open, FollowsTheModulesOfADirectory) {
  const std::string path = saved("splade", test::small_encoder());
  const auto modules = [&](const char* second) {
    write_file_atomically(
        path + "/modules.json",
        nlohmann::json{{{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", "a.Transformer"}},
                       {{"idx", 1}, {"name", "1"}, {"path", "1"}, {"type", second}}}
            .dump());
    return model_use(path);
  };
  EXPECT_EQ(modules("a.SpladePooling"), ModelUse::sparse);
  EXPECT_EQ(modules("a.MultiVectorMask"), ModelUse::multi_vector);
  EXPECT_EQ(modules("a.Pooling"), ModelUse::vectors);
}

TEST_F(Open, AModelOfMaskedWordsIsAClassifierUnlessModulesPoolItsTokens) {
  const char* const path = "tests/goldens/classifiers/masks";
  EXPECT_EQ(model_use(path), ModelUse::masks);
  const AnyModel model = open(path);
  EXPECT_EQ(std::get<infer::Classifier>(model).task(), infer::ClassifierTask::masks);
}

TEST_F(Open, APoolingOrAnswersSayWhatAGgufFileIsFor) {
  const std::string files = "tests/goldens/gguf_encoders/", decoder = folder_ / "decoder.gguf";
  EXPECT_EQ(model_use(files + "bert.gguf"), ModelUse::vectors);
  EXPECT_EQ(model_use(files + "xlm_roberta_reranker.gguf"), ModelUse::scores);
  EXPECT_EQ(model_use(files + "qwen3_reranker.gguf"), ModelUse::scores);
  model::convert_model("tests/goldens/embedders/qwen3_embedding", decoder, {});
  EXPECT_EQ(model_use(decoder), ModelUse::vectors);
}

TEST_F(Open, RefusesWhatIsNoModel) {
  expect_error(ErrorKind::BadFile, {"none"}, [&] { model_use(folder_ / "none"); });
  write_file_atomically(folder_ / "text.txt", "to be");
  expect_error(ErrorKind::BadFile, {"text.txt"}, [&] { open(folder_ / "text.txt"); });
}

}  // namespace
}  // namespace fovea
