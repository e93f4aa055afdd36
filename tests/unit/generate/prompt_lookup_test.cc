// Speculative tokens from earlier text: they never change the result, and their automatic number
// follows the acceptance.

#include <gtest/gtest.h>

#include <functional>

#include "fovea/core/random.h"
#include "generate/scheduler.h"
#include "support/expect_error.h"
#include "tokenizer/training/character_trainer.h"
#include "unit/generate/requests.h"

namespace fovea::infer {
namespace {

using test::continued;
using test::expect_same;
using test::greedy;
using test::Ids;
using test::kPlenty;
using test::small_latent_model;
using test::small_model;
using test::small_recurrent_model;
using test::small_windowed_model;

constexpr int64_t kNumbers[] = {-1, 1, 3, 64};

// Forces token number n of the generated text to be token(n).
GenerateOptions forced_text(int64_t tokens, const std::function<int64_t(int64_t n)>& token) {
  GenerateOptions options;
  options.max_tokens = tokens;
  options.constrain = [token](std::span<const int32_t> generated, std::span<float> logits) {
    const auto next = static_cast<size_t>(token(std::ssize(generated)));
    for (size_t id = 0; id < logits.size(); ++id)
      if (id != next) logits[id] = -INFINITY;
  };
  return options;
}

struct Finished {
  Generation generation;
  EngineStatus status;
};

// `others`: requests that run at the same time, without speculation.
Finished finished(const model::Transformer& model, const GenerateOptions& options,
                  const model::Transformer* draft = nullptr, uint64_t others = 0) {
  Scheduler scheduler(model, {}, nullptr, {.pages = 400, .draft = draft});
  Finished done;
  const auto sink = [&](const Event& event) {
    EXPECT_EQ(event.error, nullptr) << event.error->what();
    if (event.finished != nullptr) done.generation = *event.finished;
    return true;
  };
  scheduler.add(scheduler.request({1, {1, 2}, options, sink, false}));
  for (uint64_t i = 0; i < others; ++i)
    scheduler.add(scheduler.request({2 + i, {1, 2}, greedy(options.max_tokens), {}, false}));
  while (scheduler.step()) {
  }
  done.status = scheduler.status();
  return done;
}

int64_t periodic(int64_t n) { return n % 5; }
int64_t random(int64_t n) { return philox(1, Stream::init, 0, static_cast<uint64_t>(n))[0] % 11; }

TEST(PromptLookup, DoesNotChangeTheResult) {
  for (const model::Transformer& model : {small_model(60), small_windowed_model(60),
                                          small_recurrent_model(60), small_latent_model(60)}) {
    const Ids prompt{1, 2, 3, 4, 1, 2, 3, 4, 1, 10, 3};
    for (const float temperature : {0.0f, 0.7f}) {
      GenerateOptions options;
      options.sampling.temperature = temperature;
      options.sampling.repetition_penalty = 1.1f;
      options.max_tokens = 130;  // the context is exceeded several times
      options.logprobs = 1;
      options.speculative_tokens = 0;
      const Generation expected = continued({model}, prompt, options);
      EXPECT_EQ(expected.speculative_tokens, 0);
      for (const int64_t proposed : kNumbers) {
        options.speculative_tokens = proposed;
        expect_same(continued({model}, prompt, options), expected, std::to_string(proposed));
      }
    }
  }
}

TEST(PromptLookup, DoesNotChangeTranslations) {
  const model::Transformer model = test::small_translator();
  const Generator generator{.model = model, .rules = {.ends = {4}, .start = 0}};
  for (const float temperature : {0.0f, 1.0f}) {
    GenerateOptions options = greedy(30);
    options.sampling.temperature = temperature;
    options.ignore_end = true;
    const Generation expected = continued(generator, {1, 8, 4, 2}, options);
    for (const int64_t proposed : kNumbers) {
      options.speculative_tokens = proposed;
      expect_same(continued(generator, {1, 8, 4, 2}, options), expected, std::to_string(proposed));
    }
  }
}

TEST(PromptLookup, StopsAtTheEndOfTheText) {
  text::CharacterTrainer trainer;
  trainer.add("abcdefgh\n");
  const text::Tokenizer tokenizer = trainer.train({});
  const model::Transformer model = small_model(60, tokenizer.size());
  const Ids letters = tokenizer.encode("abcdefg");
  GenerateOptions options = forced_text(40, [&](int64_t n) {
    return letters[static_cast<size_t>(n < 20 ? n % 5 : n % 7)];  // the period changes
  });
  options.speculative_tokens = 0;
  const std::string free = continued({model, &tokenizer}, tokenizer.encode("ab"), options).text;
  for (size_t begin = 17; begin < 27; ++begin) {
    options.stop = {free.substr(begin, 2) + "x", free.substr(begin, 6)};
    options.speculative_tokens = 0;
    const Generation expected = continued({model, &tokenizer}, tokenizer.encode("ab"), options);
    for (const int64_t proposed : kNumbers) {
      options.speculative_tokens = proposed;
      std::string streamed;
      const auto sink = [&](std::string_view piece) {
        streamed += piece;
        return true;
      };
      const Generation found =
          generate({model, &tokenizer}, tokenizer.encode("ab"), options, sink, kPlenty)[0];
      expect_same(found, expected, std::to_string(proposed));
      EXPECT_EQ(streamed, expected.text);
    }
  }
}

// All requests choose their numbers, beside others that run at the same time.
TEST(PromptLookup, DoesNotChangeConcurrentRequests) {
  for (const model::Transformer& model : {small_model(150), small_recurrent_model(150)}) {
    auto requests = test::requests::some_requests(24, 150);
    for (auto& asked : requests) {
      asked.options.max_tokens = std::min(asked.options.max_tokens, 150 - std::ssize(asked.prompt));
      if (asked.options.generations == 1) asked.options.speculative_tokens = -1;
    }
    const auto expected = test::requests::alone(model, requests, {});
    for (const int64_t pages : {9, 400}) {
      for (const int64_t most_sequences : {3, 16}) {
        const SchedulerOptions options{.pages = pages, .most_sequences = most_sequences};
        EXPECT_EQ(test::requests::answers_of(model, requests, options, {}, 2), expected) << pages;
      }
    }
  }
}

TEST(PromptLookup, GeneratesSeveralTokensPerPassOfRepetitiveText) {
  const model::Transformer model = small_model(300);
  const Finished found = finished(model, forced_text(250, periodic));
  EXPECT_EQ(std::ssize(found.generation.ids), 250);
  EXPECT_LT(found.status.steps, 250 / 5);
  EXPECT_GT(found.generation.accepted_tokens, 150);
  EXPECT_EQ(found.status.speculative_tokens, found.generation.speculative_tokens);
  EXPECT_EQ(found.status.accepted_tokens, found.generation.accepted_tokens);
  // Each pass generates one token in addition to the accepted ones.
  EXPECT_EQ(found.status.generated_tokens, found.status.steps + found.generation.accepted_tokens);
}

TEST(PromptLookup, StopsProposingInRandomText) {
  const model::Transformer model = small_model(1100);
  const Finished found = finished(model, forced_text(1000, random));
  EXPECT_LT(found.generation.speculative_tokens, 100);
  EXPECT_GT(found.generation.speculative_tokens, 0);
}

TEST(PromptLookup, ProposesLessIfMoreTextsShareAPass) {
  const model::Transformer model = small_model(300);
  int64_t previous = 200;
  for (const uint64_t others : {0, 3, 15}) {
    const Generation found =
        finished(model, forced_text(200, periodic), nullptr, others).generation;
    EXPECT_LT(found.accepted_tokens, previous) << others;
    previous = found.accepted_tokens;
  }
  EXPECT_EQ(previous, 0);
}

TEST(PromptLookup, ChoosesTheNumberOfADraftModel) {
  model::Spec spec = test::small_decoder({.vocabulary = 11, .context = 300, .layers = 12});
  const model::Transformer model = test::made(model::validated(spec));
  spec.decoder->layers = 1;
  const model::Transformer draft = test::made(model::validated(spec));
  // The draft model follows the same constraint, so all its speculative tokens are accepted.
  const GenerateOptions options = forced_text(200, random);
  const Finished small = finished(model, options, &draft), equal = finished(model, options, &model);
  EXPECT_EQ(small.generation.accepted_tokens, small.generation.speculative_tokens);
  EXPECT_LT(small.status.steps, 200 / 2);
  EXPECT_EQ(equal.generation.speculative_tokens, 0);  // a draft as large as the model never pays
}

// The pages of a text that fills the cache were stored with rejected speculative tokens, which took
// a second page: "the key-value cache is full".
TEST(PromptLookup, NeedsNoMoreMemory) {
  const model::Transformer model = small_model(kPageTokens);
  const auto two_tokens = [](int64_t n) { return random(n) % 2; };
  GenerateOptions options = forced_text(400, two_tokens);
  for (const int64_t proposed : {-1, 1, 3, 15}) {
    options.speculative_tokens = proposed;
    const Generation found = continued({model}, {1, 2}, options);
    EXPECT_EQ(std::ssize(found.ids), 400) << proposed;
    EXPECT_GT(found.speculative_tokens, found.accepted_tokens) << proposed;
  }
}

TEST(PromptLookup, RefusesOtherNumbers) {
  const model::Transformer model = small_model(30);
  GenerateOptions options = greedy(3);
  for (const int64_t proposed : {-2, 65}) {
    options.speculative_tokens = proposed;
    expect_error(ErrorKind::InvalidArgument,
                 {"speculative_tokens: " + std::to_string(proposed), "expected -1 to 64"},
                 [&] { continued({model}, {1, 2}, options); });
  }
}

}  // namespace
}  // namespace fovea::infer
