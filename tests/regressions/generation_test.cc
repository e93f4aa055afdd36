#include <gtest/gtest.h>

#include "base/json.h"
#include "fovea/infer/generate.h"
#include "generate/scheduler.h"
#include "generate/translation.h"
#include "tokenizer/training/character_trainer.h"
#include "unit/generate/small_models.h"

namespace fovea {
namespace {

using test::Ids;

// A checkpoint may have more rows in its embedding than its tokenizer has tokens. If one of these
// rows was drawn, a sample during training, and generation, ended with the error "token id: N is
// not in the vocabulary". Such ids are now never generated.
class PaddedVocabulary : public testing::Test {
 protected:
  static constexpr int64_t kTokens = 6, kRows = 200;

  PaddedVocabulary() {
    text::CharacterTrainer trainer;
    trainer.add("abcde");  // and the unknown token
    tokenizer_ = trainer.train({});
    EXPECT_EQ(tokenizer_->size(), kTokens);
  }
  // Nearly all tokens of a random model are rows without a token.
  void expect_tokens(const model::Transformer& model, const infer::GenerateOptions& options,
                     const infer::GenerationRules& rules = {},
                     const model::Transformer* draft = nullptr) const {
    const infer::Generator generator{
        .model = model, .tokenizer = &*tokenizer_, .rules = rules, .draft = draft};
    for (const infer::Generation& found :
         infer::generate(generator, {1, 2}, options, {}, test::kPlenty)) {
      EXPECT_EQ(std::ssize(found.ids), options.max_tokens);
      for (const int32_t id : found.ids) EXPECT_LT(id, kTokens);
      for (const infer::TokenLogprob& logprob : found.logprobs)
        for (const auto& [id, value] : logprob.top) EXPECT_LT(id, kTokens);
      EXPECT_EQ(found.text, tokenizer_->decode(found.ids, true));
    }
  }
  static infer::GenerateOptions options(float temperature) {
    infer::GenerateOptions options;
    options.max_tokens = 12;
    options.sampling.temperature = temperature;
    options.sampling.top_k = 0;
    return options;
  }

  std::optional<text::Tokenizer> tokenizer_;
};

TEST_F(PaddedVocabulary, IsNeverSampled) {
  const model::Transformer model = test::small_model(40, kRows);
  for (const float temperature : {0.0f, 1.0f, 5.0f}) {
    infer::GenerateOptions o = options(temperature);
    o.generations = 3;
    o.logprobs = 4;
    expect_tokens(model, o);
  }
}

TEST_F(PaddedVocabulary, IsNoHypothesisOfABeamSearch) {
  infer::GenerateOptions o = options(0);
  o.beams = 4;
  expect_tokens(test::small_model(40, kRows), o);
}

TEST_F(PaddedVocabulary, IsNotProposed) {
  const model::Transformer model = test::small_model(40, kRows),
                           draft = test::small_model(40, kRows + 7);
  infer::GenerateOptions o = options(1);
  o.speculative_tokens = 3;
  expect_tokens(model, o, {}, &draft);
}

TEST_F(PaddedVocabulary, IsInNoTranslation) {
  model::Spec spec = test::small_encoder_decoder({.vocabulary = kRows, .context = 40});
  spec.head.tied = false;
  const model::Transformer model = test::made(model::validated(spec));
  const infer::Generator generator{
      .model = model, .tokenizer = &*tokenizer_, .rules = {.start = 0}, .source = &*tokenizer_};
  infer::TranslateOptions o;
  o.beams = 3;
  bool read = false;
  infer::translate(
      generator, o, test::kPlenty,
      [&]() -> std::optional<std::string> {
        return std::exchange(read, true) ? std::nullopt : std::optional<std::string>("abc");
      },
      [&](const infer::Translation& translation) {
        for (const int32_t id : translation.best[0].ids) EXPECT_LT(id, kTokens);
        return true;
      });
  EXPECT_TRUE(read);
}

// A text of a model with LongRoPE that grew beyond the original context kept the keys of the short
// frequencies, so that its continuation differed from that of the same text as a prompt, and from
// that of transformers (tools/goldens/make_longrope_texts.py). Such a text is now read again.
TEST(LongRope, ContinuesATextBeyondTheOriginalContext) {
  const std::string folder = "tests/goldens/longrope_texts";
  const model::Model model = model::Model::open(folder);
  infer::GenerateOptions o;
  o.sampling.temperature = 0;
  o.ignore_end = true;
  for (const auto& one : read_json(folder + "/texts.json")["cases"]) {
    const Ids prompt = one["prompt"].get<Ids>(), expected = one["generated"].get<Ids>();
    for (const int64_t proposed : {0, 3}) {
      o.speculative_tokens = proposed;
      o.max_tokens = std::ssize(expected);
      EXPECT_EQ(infer::generate(model, prompt, o)[0].ids, expected)
          << prompt.size() << " " << proposed;
    }
    o.beams = 2;
    EXPECT_EQ(std::ssize(infer::generate(model, prompt, o)[0].ids), std::ssize(expected));
    o.beams = 1;
    Ids text = prompt;
    for (const int32_t id : expected) {
      o.max_tokens = 1;
      EXPECT_EQ(infer::generate(model, text, o)[0].ids, Ids{id}) << text.size();
      text.push_back(id);
    }
  }
}

}  // namespace
}  // namespace fovea
