#include "generate/generate.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/threads.h"
#include "support/expect_error.h"
#include "tokenizer/training/character_trainer.h"
#include "unit/generate/small_models.h"

namespace fovea::infer {
namespace {

using test::continued;
using test::greedy;
using test::Ids;
using test::kPlenty;
using test::logits_after;
using test::most_likely;
using test::small_model;

// With windows and with recurrent layers, in texts that are much longer than the windows and that
// exceed the context.
TEST(Generating, ReleasesPagesWithoutEffect) {
  constexpr int64_t kContext = 310;
  for (const model::Transformer& model :
       {test::small_windowed_model(kContext), test::small_recurrent_model(kContext)}) {
    Ids prompt, generated;
    for (int32_t i = 0; i < 290; ++i) prompt.push_back(i * i % 11);
    for (Ids ids = prompt; generated.size() < 60; ids.push_back(generated.back())) {
      if (std::ssize(ids) > kContext) ids.erase(ids.begin(), ids.end() - kContext / 2);
      generated.push_back(most_likely(logits_after(model, ids)));
    }
    GenerateOptions options = greedy(60);
    for (const int64_t proposed : {-1, 0, 64}) {
      options.speculative_tokens = proposed;
      EXPECT_EQ(continued({model}, prompt, options).ids, generated) << proposed;
    }
  }
}

TEST(Generating, GreedilySelectsTheMostLikelyToken) {
  const model::Transformer model = small_model(40);
  const int threads = thread_count();
  for (const DType compute : {DType::f32, DType::bf16}) {
    Ids ids{1, 2, 3};
    for (int n = 0; n < 30; ++n) ids.push_back(most_likely(logits_after(model, ids, compute)));
    EXPECT_GT(std::set(ids.begin(), ids.end()).size(), 3u);
    for (const int count : {1, 2}) {
      set_threads(count);
      const Generation result = continued({model, nullptr, {}, compute}, {1, 2, 3}, greedy(30));
      EXPECT_EQ(result.ids, Ids(ids.begin() + 3, ids.end()));
      EXPECT_EQ(result.finish, FinishReason::length);
      EXPECT_EQ(result.prompt_tokens, 3);
      EXPECT_TRUE(result.text.empty());
    }
  }
  set_threads(threads);
}

TEST(Generating, ContinuesPastTheContext) {
  for (const int64_t context : {1, 2, 7, 8}) {
    const model::Transformer model = small_model(context);
    for (const int64_t prompt : {1, 5, 50}) {
      Ids window;
      for (int64_t i = 0; i < prompt; ++i) window.push_back(static_cast<int32_t>(i * i % 11));
      const Ids given = window;
      Ids expected;
      for (int n = 0; n < 30; ++n) {
        if (std::ssize(window) > context)  // the newer half is kept
          window.erase(window.begin(), window.end() - std::max<int64_t>(1, context / 2));
        expected.push_back(most_likely(logits_after(model, window)));
        window.push_back(expected.back());
      }
      EXPECT_EQ(continued({model}, given, greedy(30)).ids, expected) << context << ' ' << prompt;
    }
  }
}

TEST(Generating, SamplesTheSameTextForTheSameSeed) {
  const model::Transformer model = small_model();
  const auto drawn = [&](uint64_t seed) {
    GenerateOptions options;
    options.sampling.seed = seed;
    options.max_tokens = 40;  // longer than the context
    return continued({model}, {1}, options).ids;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Generating, SamplesSeveralIndependentTexts) {
  const model::Transformer model = small_model(30);
  GenerateOptions options;
  options.max_tokens = 20;
  options.generations = 5;
  const auto five = generate({model}, {1, 2}, options, {}, kPlenty);
  options.generations = 2;
  const auto two = generate({model}, {1, 2}, options, {}, kPlenty);
  ASSERT_EQ(five.size(), 5u);
  EXPECT_EQ(five[0].ids, two[0].ids);
  EXPECT_EQ(five[1].ids, two[1].ids);
  std::set<Ids> distinct;
  for (const Generation& generation : five) distinct.insert(generation.ids);
  EXPECT_EQ(distinct.size(), 5u);
}

TEST(Generating, EndsAtAnEndToken) {
  const model::Transformer model = small_model();
  const Ids free = continued({model}, {1}, greedy(6)).ids;
  const int32_t end = free[2];
  const auto first = std::find(free.begin(), free.end(), end);
  const Generator ending{model, nullptr, {.ends = {end}}};
  const Generation result = continued(ending, {1}, greedy(-1));
  EXPECT_EQ(result.ids, Ids(free.begin(), first));
  EXPECT_EQ(result.finish, FinishReason::end);
  GenerateOptions past = greedy(6);
  past.ignore_end = true;
  EXPECT_EQ(continued(ending, {1}, past).ids, free);
  GenerateOptions asked = greedy(6);
  asked.stop_ids = {end};
  EXPECT_EQ(continued({model}, {1}, asked).ids, Ids(free.begin(), first));
  EXPECT_EQ(continued({model}, {1}, asked).finish, FinishReason::stop);
  GenerateOptions later = greedy(6);
  later.min_tokens = 4;
  EXPECT_GE(continued(ending, {1}, later).ids.size(), 4u);
}

TEST(Generating, RefusesInvalidPrompts) {
  const model::Transformer model = small_model();
  const Generator generator{model};
  EXPECT_TRUE(continued(generator, {1}, greedy(0)).ids.empty());
  const auto refused = [&](const Ids& prompt, const GenerateOptions& options,
                           std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::InvalidArgument, parts, [&] { continued(generator, prompt, options); });
  };
  refused({1}, greedy(-2), {"max_tokens: -2", "-1"});
  refused({}, greedy(1), {"prompt: no tokens"});
  refused({1, 11}, greedy(1), {"prompt: token id 11", "0 to 10"});
  refused({-1}, greedy(1), {"prompt: token id -1"});
  expect_error(ErrorKind::OutOfMemory, {"a page of keys and values"},
               [&] { generate(generator, {1}, greedy(1), {}, 100); });
}

TEST(Generating, ReportsLogProbabilities) {
  const model::Transformer model = small_model(20);
  GenerateOptions options = greedy(5);
  options.logprobs = 2;
  const Generation result = continued({model}, {1, 2}, options);
  ASSERT_EQ(result.logprobs.size(), 5u);
  Ids ids{1, 2};
  for (size_t i = 0; i < 5; ++i) {
    const test::Floats logits = logits_after(model, ids);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit});
    const auto id = static_cast<size_t>(result.ids[i]);
    EXPECT_NEAR(result.logprobs[i].logprob, logits[id] - std::log(sum), 1e-5);
    ASSERT_EQ(result.logprobs[i].top.size(), 2u);
    EXPECT_EQ(result.logprobs[i].top[0].first, result.ids[i]);
    ids.push_back(result.ids[i]);
  }
}

class TextTest : public testing::Test {
 protected:
  TextTest() {
    text::CharacterTrainer trainer;
    trainer.add("abcdefgh\n");
    tokenizer_ = trainer.train({});
    model_ = small_model(16, tokenizer_->size());
  }
  Generation write(const GenerateOptions& options, const TextSink& sink = {},
                   const std::string& prompt = "ab") {
    return generate({model_, &*tokenizer_}, prompt_ids(*tokenizer_, model_.spec, prompt), options,
                    sink, kPlenty)[0];
  }

  std::optional<text::Tokenizer> tokenizer_;
  model::Transformer model_;
};

GenerateOptions sampled(int64_t tokens) {
  GenerateOptions options;
  options.sampling.temperature = 2;
  options.max_tokens = tokens;
  return options;
}

TEST_F(TextTest, StreamsExactlyTheText) {
  std::string streamed;
  const Generation result = write(sampled(40), [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(result.text, streamed);
  EXPECT_EQ(result.text, tokenizer_->decode(result.ids, true));
  EXPECT_EQ(result.finish, FinishReason::length);
}

TEST_F(TextTest, StopsBeforeAStopString) {
  const std::string free = write(sampled(40)).text;
  const std::string stop = free.substr(10, 3);
  ASSERT_GT(free.find(stop), 4u);
  GenerateOptions options = sampled(40);
  options.stop = {"not there", "", stop};
  std::string streamed;
  const Generation result = write(options, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(result.text, free.substr(0, free.find(stop)));
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.finish, FinishReason::stop);
}

TEST_F(TextTest, StopsWhenTheSinkReturnsFalse) {
  int pieces = 0;
  const Generation result = write(sampled(40), [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(result.finish, FinishReason::cancelled);
  EXPECT_EQ(pieces, 3);
}

TEST_F(TextTest, BeginsAnEmptyPromptWithALineBreak) {
  EXPECT_EQ(write(greedy(5), {}, "").text, write(greedy(5), {}, "\n").text);
}

}  // namespace
}  // namespace fovea::infer
