// Diverse and constrained beam search.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "fovea/core/random.h"
#include "fovea/train/train_tokenizer.h"
#include "generate/beam_search.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

constexpr int64_t kVocabulary = 6, kLength = 5;

// The log-probabilities of a small random model: a function of the last token.
std::vector<float> toy_logits(const std::vector<int32_t>& ids) {
  Random random(17, Stream::sampling, static_cast<uint32_t>(ids.empty() ? 99 : ids.back()));
  std::vector<float> logits;
  double sum = 0;
  for (int64_t i = 0; i < kVocabulary; ++i) {
    logits.push_back(static_cast<float>(2 * random.uniform_double()));
    sum += std::exp(double{logits.back()});
  }
  for (float& logit : logits) logit -= static_cast<float>(std::log(sum));
  return logits;
}

std::vector<infer::BeamSearch::Hypothesis> searched(const infer::GenerateOptions& options,
                                                    const infer::RequiredTexts* required = nullptr,
                                                    const infer::GenerationRules& rules = {}) {
  const std::vector<int32_t> prompt;
  infer::BeamSearch search(rules, options, prompt, required);
  while (!search.done()) {
    std::vector<std::vector<infer::BeamSearch::Continuation>> found;
    for (size_t i = 0; i < search.hypotheses().size(); ++i)
      found.push_back(
          search.best_after(i, toy_logits(search.hypotheses()[i].ids).data(), kVocabulary));
    search.advance(found);
  }
  return search.best();
}

struct Naive {
  std::vector<int32_t> ids;
  double score = 0;
};

// Vijayakumar et al. 2018, algorithm 1, with the Hamming diversity, without end tokens.
std::vector<Naive> naive_groups(int64_t groups, int64_t size, double penalty) {
  std::vector<std::vector<Naive>> all(static_cast<size_t>(groups), {Naive{}});
  for (int64_t step = 0; step < kLength; ++step) {
    std::map<int32_t, int> taken;
    for (std::vector<Naive>& group : all) {
      std::vector<Naive> next;
      for (const Naive& one : group) {
        const std::vector<float> logits = toy_logits(one.ids);
        for (int32_t id = 0; id < kVocabulary; ++id) {
          Naive more = one;
          more.ids.push_back(id);
          more.score += double{logits[static_cast<size_t>(id)]} - penalty * taken[id];
          next.push_back(more);
        }
      }
      std::stable_sort(next.begin(), next.end(),
                       [](const Naive& a, const Naive& b) { return a.score > b.score; });
      next.resize(static_cast<size_t>(size));
      group = next;
      for (const Naive& one : group) ++taken[one.ids.back()];
    }
  }
  std::vector<Naive> best;
  for (const auto& group : all) best.insert(best.end(), group.begin(), group.end());
  std::stable_sort(best.begin(), best.end(),
                   [](const Naive& a, const Naive& b) { return a.score > b.score; });
  return best;
}

TEST(BeamGroups, AreThoseOfTheDefinition) {
  for (const auto& [groups, size] : {std::pair<int64_t, int64_t>{2, 2}, {3, 1}, {4, 2}, {1, 3}}) {
    for (const float penalty : {0.0f, 0.5f, 3.0f}) {
      infer::GenerateOptions options;
      options.beam_groups = groups;
      options.beams = groups * size;
      options.diversity_penalty = penalty;
      options.max_tokens = kLength;
      const auto found = searched(options);
      const std::vector<Naive> expected = naive_groups(groups, size, double{penalty});
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].ids, expected[i].ids) << groups << " groups, " << i;
        EXPECT_NEAR(found[i].score, expected[i].score / static_cast<double>(kLength), 1e-5);
      }
    }
  }
}

TEST(BeamGroups, DivideTheBeams) {
  infer::GenerateOptions options;
  options.beams = 4;
  options.beam_groups = 3;
  expect_error(ErrorKind::InvalidArgument, {"beam_groups: 3; expected a divisor", "4"},
               [&] { infer::check_options(options, kVocabulary); });
  options.beam_groups = 2;
  options.required = {"a"};
  expect_error(ErrorKind::InvalidArgument, {"required", "beam_groups"},
               [&] { infer::check_options(options, kVocabulary); });
}

class RequiredWords : public testing::Test {
 protected:
  RequiredWords() {
    std::ofstream(folder_ / "text.txt") << "abcde";
    text::TokenizerTraining options;
    options.kind = text::TokenizerKind::character;
    options.vocabulary = 0;
    options.end_of_text = false;
    tokenizer_ = train::train_tokenizer({folder_ / "text.txt"}, options)->tokenizer;
  }

  std::string text(const std::vector<int32_t>& ids) const {
    std::string text;
    for (const int32_t id : ids) text += tokenizer_->bytes_of(id);
    return text;
  }

  TemporaryFolder folder_;
  std::optional<text::Tokenizer> tokenizer_;
};

TEST_F(RequiredWords, AreInEveryHypothesis) {
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"ace"}, {"b", "dd"}, {"e", "a", "c"}}) {
    infer::GenerateOptions options;
    options.beams = 4;
    options.max_tokens = kLength;
    const infer::RequiredTexts required(texts, *tokenizer_);
    const auto found = searched(options, &required, {.tokens = tokenizer_->size()});
    ASSERT_EQ(found.size(), 4u);
    for (const infer::BeamSearch::Hypothesis& one : found)
      for (const std::string& each : texts)
        EXPECT_NE(text(one.ids).find(each), std::string::npos) << text(one.ids) << " " << each;
  }
}

TEST_F(RequiredWords, PrecedeTheEnd) {
  infer::GenerateOptions options;
  options.beams = 3;
  options.max_tokens = 12;
  const infer::GenerationRules rules{.ends = {*tokenizer_->id_of("a")},
                                     .tokens = tokenizer_->size()};
  const infer::RequiredTexts required({"cd"}, *tokenizer_);
  for (const infer::BeamSearch::Hypothesis& one : searched(options, &required, rules))
    EXPECT_NE(text(one.ids).find("cd"), std::string::npos) << text(one.ids);
}

TEST_F(RequiredWords, HaveTokens) {
  expect_error(ErrorKind::InvalidArgument, {"required", "\"xyz\" has characters without a token"},
               [&] { infer::RequiredTexts({"xyz"}, *tokenizer_); });
}

TEST_F(RequiredWords, CountTheTokensThatAreWritten) {
  const infer::RequiredTexts required({"abc", "de"}, *tokenizer_);
  const auto after = [&](const std::string& written) {
    return required.after(tokenizer_->encode(written));
  };
  EXPECT_EQ(after("").done, 0);
  EXPECT_EQ(after("eab").done, 2);
  EXPECT_EQ(after("abde").done, 2);
  EXPECT_EQ(after("abcd").done, 4);
  EXPECT_EQ(after("abcd").left, 2);
  EXPECT_EQ(after("abcd").onward, tokenizer_->encode("e"));
  EXPECT_EQ(after("e").onward.size(), 2u);
  EXPECT_EQ(after("deabc").left, 0);
}

// A term of a translation is a word of its own: tokens that continue it do not follow.
TEST_F(RequiredWords, MayBeWholeWords) {
  std::ofstream(folder_ / "words.txt") << "abcde -";
  text::TokenizerTraining options;
  options.kind = text::TokenizerKind::character;
  options.vocabulary = 0;
  options.end_of_text = false;
  const text::Tokenizer words = train::train_tokenizer({folder_ / "words.txt"}, options)->tokenizer;
  const infer::RequiredTexts required({"ab", "de"}, words, true);
  const auto after = [&](const std::string& written) {
    return required.after(words.encode(written));
  };
  EXPECT_EQ(after("ab").left, after("ab c").left);
  EXPECT_LT(after("ab").left, after("abc").left);
  EXPECT_EQ(after("abc").left, after("cab").left);
  EXPECT_TRUE(after("ab").ends_word);
  EXPECT_FALSE(after("ab ").ends_word);
  EXPECT_FALSE(after("ab-c").ends_word);
  std::string continuing;
  for (const int32_t id : required.continuing()) continuing += words.bytes_of(id);
  std::sort(continuing.begin(), continuing.end());
  EXPECT_EQ(continuing, "abcde");
  EXPECT_TRUE(infer::RequiredTexts({"ab"}, words).continuing().empty());
}

}  // namespace
}  // namespace fovea
