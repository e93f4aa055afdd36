// Speculative decoding never changes the result, whatever tokens the draft model proposes.

#include <gtest/gtest.h>

#include <map>

#include "generate/scheduler.h"
#include "support/expect_error.h"
#include "tokenizer/training/character_trainer.h"
#include "unit/generate/small_models.h"

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

model::Transformer other_model(int64_t context, uint64_t seed = 2, int64_t vocabulary = 11) {
  model::Spec spec = small_model(context, vocabulary).spec;
  spec.decoder->layers = 1;
  return test::made(model::validated(spec), seed);
}

// Returns a draft model that greedily proposes the model's least likely token.
model::Transformer opposite_of(const model::Transformer& model) {
  model::Transformer opposite = test::made(model.spec);
  for (model::Parameter* p : {&opposite.head.output.weight, &opposite.head.output.bias}) {
    for (int64_t i = 0; i < p->value.size(); ++i) p->value.data_as<float>()[i] *= -1;
  }
  return opposite;
}

TEST(Drafts, DoNotChangeTheResult) {
  for (const model::Transformer& model :
       {small_model(60), small_recurrent_model(60), small_latent_model(60)}) {
    const model::Transformer drafts[] = {small_model(60),
                                         other_model(60),
                                         other_model(8),
                                         other_model(1),
                                         other_model(60, 3, 7),
                                         opposite_of(model),
                                         small_recurrent_model(60),
                                         small_latent_model(60)};
    const Ids prompt{1, 2, 3, 4, 1, 2, 3, 4, 1, 10, 3};
    for (const float temperature : {0.0f, 0.7f}) {
      GenerateOptions options;
      options.sampling.temperature = temperature;
      options.sampling.repetition_penalty = 1.1f;
      options.sampling.presence_penalty = 0.1f;
      options.max_tokens = 130;  // the context is exceeded several times
      options.logprobs = 1;
      options.speculative_tokens = 0;
      const Generation expected = continued({model}, prompt, options);
      for (size_t i = 0; i < std::size(drafts); ++i) {
        for (const int64_t proposed : {-1, 1, 3, 64}) {
          options.speculative_tokens = proposed;
          const Generator generator{.model = model, .draft = &drafts[i]};
          expect_same(continued(generator, prompt, options), expected,
                      fmt::format("draft {}, {} speculative tokens", i, proposed));
        }
      }
    }
  }
}

// The draft model samples by the same rules and with the same random numbers.
TEST(Drafts, EqualToTheModelAreAlwaysAccepted) {
  const model::Transformer model = small_model(90);
  for (const float temperature : {0.0f, 1.0f}) {
    for (const int64_t generations : {1, 3}) {
      GenerateOptions options;
      options.sampling.temperature = temperature;
      options.sampling.frequency_penalty = 0.5f;
      options.sampling.no_repeat_ngram = 3;
      options.generations = generations;
      options.max_tokens = 50;
      options.min_tokens = 20;
      options.speculative_tokens = 0;
      const GenerationRules rules{.ends = {4}};
      const auto expected = generate({model, nullptr, rules}, {1, 2, 3}, options, {}, kPlenty);
      options.speculative_tokens = 4;
      const auto found = generate({.model = model, .rules = rules, .draft = &model}, {1, 2, 3},
                                  options, {}, kPlenty);
      for (size_t i = 0; i < found.size(); ++i) {
        expect_same(found[i], expected[i], std::to_string(i));
        EXPECT_GT(found[i].speculative_tokens, std::ssize(found[i].ids) / 2);
        EXPECT_EQ(found[i].accepted_tokens, found[i].speculative_tokens);
      }
    }
  }
}

TEST(Drafts, AlwaysRejectedDoNotChangeTheResult) {
  const model::Transformer model = small_model(60), draft = opposite_of(model);
  GenerateOptions options = greedy(50);
  const Generation expected = continued({model}, {1, 2}, options);
  options.speculative_tokens = 5;
  const Generation found = continued({.model = model, .draft = &draft}, {1, 2}, options);
  expect_same(found, expected, "opposite");
  // One speculative token is proposed per generated token, except for the first and the last.
  EXPECT_EQ(found.speculative_tokens, 48);
  EXPECT_EQ(found.accepted_tokens, 0);
}

TEST(Drafts, WorkWithTranslators) {
  const model::Transformer model = test::small_translator();
  model::Spec smaller = model.spec;
  smaller.decoder->layers = 1;
  smaller.context = 12;  // too small for the longest source
  const model::Transformer drafts[] = {test::small_translator(),
                                       test::made(model::validated(smaller), 3)};
  const GenerationRules rules{.ends = {4}, .start = 0};
  for (const int64_t length : {1, 7, 30}) {
    Ids source;
    for (int64_t i = 0; i < length; ++i) source.push_back(static_cast<int32_t>((7 * i + 1) % 11));
    GenerateOptions options = greedy(30);
    options.ignore_end = true;
    const Generation expected = continued({model, nullptr, rules}, source, options);
    options.speculative_tokens = 3;
    for (const model::Transformer& draft : drafts) {
      const Generator generator{.model = model, .rules = rules, .draft = &draft};
      const Generation found = continued(generator, source, options);
      expect_same(found, expected, std::to_string(length));
      if (&draft == &drafts[0]) {
        EXPECT_GT(found.speculative_tokens, 15);
        EXPECT_EQ(found.accepted_tokens, found.speculative_tokens);
      }
    }
  }
}

TEST(Drafts, StopAtTheEndOfTheText) {
  text::CharacterTrainer trainer;
  trainer.add("abcdefgh\n");
  const text::Tokenizer tokenizer = trainer.train({});
  const model::Transformer model = small_model(60, tokenizer.size());
  const Ids prompt = tokenizer.encode("ab");
  GenerateOptions options;
  options.sampling.temperature = 2;
  options.max_tokens = 40;
  options.speculative_tokens = 0;
  const std::string free = continued({model, &tokenizer}, prompt, options).text;
  for (size_t begin = 5; begin < 12; ++begin) {
    options.stop = {free.substr(begin, 3)};
    options.speculative_tokens = 0;
    const Generation expected = continued({model, &tokenizer}, prompt, options);
    options.speculative_tokens = 4;
    const Generator generator{.model = model, .tokenizer = &tokenizer, .draft = &model};
    std::string streamed;
    const Generation found = generate(
        generator, prompt, options,
        [&](std::string_view piece) {
          streamed += piece;
          return true;
        },
        kPlenty)[0];
    expect_same(found, expected, options.stop[0]);
    EXPECT_EQ(found.text, expected.text);
    EXPECT_EQ(streamed, expected.text);
    EXPECT_EQ(found.accepted_tokens, found.speculative_tokens);
  }
}

// A constraint receives speculative tokens that may be rejected afterwards.
TEST(Drafts, RespectAConstraint) {
  const model::Transformer model = small_model(60);
  GenerateOptions options;
  options.max_tokens = 40;
  options.constrain = [](std::span<const int32_t> generated, std::span<float> logits) {
    for (size_t id = 0; id < logits.size(); ++id)
      if (id % 3 != generated.size() % 3) logits[id] = -INFINITY;
  };
  options.speculative_tokens = 0;
  const Generation expected = continued({model}, {1, 2}, options);
  for (const int64_t proposed : {-1, 5}) {
    options.speculative_tokens = proposed;
    expect_same(continued({model}, {1, 2}, options), expected, "no draft");
    for (const model::Transformer& draft : {small_model(60), other_model(60)})
      expect_same(continued({.model = model, .draft = &draft}, {1, 2}, options), expected, "draft");
  }
}

struct Outcome {
  std::map<uint64_t, std::map<int64_t, Ids>> generations;
  EngineStatus status;
};

// Runs requests of several kinds; one arrives at each step.
Outcome outcome(const model::Transformer& model, const SchedulerOptions& options,
                int64_t proposed) {
  Scheduler scheduler(model, {.ends = {4}}, nullptr, options);
  Outcome outcome;
  for (uint64_t number = 1; number <= 14; ++number) {
    GenerateOptions asked;
    asked.max_tokens = static_cast<int64_t>(5 + number * 3);
    asked.sampling.seed = number;
    asked.sampling.temperature = number % 2 == 0 ? 0.0f : 1.0f;
    if (number % 4 == 1) asked.generations = 3;
    if (number % 5 == 2) asked.beams = 3;
    asked.speculative_tokens = proposed;
    const Ids prompt(number * 7 % 90 + 1, static_cast<int32_t>(number % 3));
    const auto sink = [&outcome, number](const Event& event) {
      EXPECT_EQ(event.error, nullptr) << event.error->what();
      if (event.finished != nullptr)
        outcome.generations[number][event.generation] = event.finished->ids;
      return true;
    };
    scheduler.add(scheduler.request({number, prompt, asked, sink, false}));
    scheduler.step();
  }
  while (scheduler.step()) {
  }
  outcome.status = scheduler.status();
  return outcome;
}

TEST(Drafts, DoNotChangeConcurrentRequests) {
  for (const model::Transformer& model :
       {small_model(150), small_recurrent_model(150), small_latent_model(150)}) {
    const model::Transformer draft = other_model(150);
    const Outcome expected = outcome(model, {.pages = 400}, 0);
    for (const int64_t pages : {9, 30, 400}) {  // with the fewest pages, requests are evicted
      for (const int64_t most_sequences : {4, 16}) {
        const Outcome found =
            outcome(model, {.pages = pages, .most_sequences = most_sequences, .draft = &draft}, 4);
        EXPECT_EQ(found.generations, expected.generations) << pages;
        EXPECT_EQ(found.status.generated_tokens, expected.status.generated_tokens);
        EXPECT_GT(found.status.speculative_tokens, 0);
      }
    }
    SchedulerOptions few{.pages = 400, .most_sequences = 4};
    const int64_t steps = outcome(model, few, 0).status.steps;
    few.draft = &model;
    const Outcome same = outcome(model, few, 4);
    EXPECT_EQ(same.status.accepted_tokens, same.status.speculative_tokens);
    EXPECT_LT(same.status.steps, steps);
  }
}

// Rejected tokens are removed from texts whose earlier pages were released.
TEST(Drafts, DoNotChangeLongTexts) {
  constexpr int64_t kContext = 300;
  const model::Transformer models[] = {small_windowed_model(kContext),
                                       small_recurrent_model(kContext)};
  const Ids prompt(100, 2);
  for (const model::Transformer& model : models) {
    const model::Transformer drafts[] = {small_windowed_model(kContext),
                                         small_recurrent_model(kContext), opposite_of(model),
                                         other_model(kContext), model};
    GenerateOptions options;
    options.sampling.temperature = 0.7f;
    options.max_tokens = 250;  // the context is exceeded
    options.speculative_tokens = 0;
    const Generation expected = continued({model}, prompt, options);
    for (size_t i = 0; i < std::size(drafts); ++i) {
      for (const int64_t proposed : {-1, 3, 64}) {
        options.speculative_tokens = proposed;
        const Generation found = continued({.model = model, .draft = &drafts[i]}, prompt, options);
        expect_same(found, expected, fmt::format("draft {}, {} speculative tokens", i, proposed));
        if (i + 1 == std::size(drafts) && proposed > 0) {
          EXPECT_GT(found.accepted_tokens, 0);
        }
      }
    }
  }
}

// The cache has room for the result, but not for speculative tokens beyond its end.
TEST(Drafts, WorkWithoutSparePages) {
  const model::Transformer model = small_model(200), draft = other_model(200);
  Scheduler scheduler(model, {}, nullptr, {.pages = 2, .draft = &draft});
  Generation result;
  const auto sink = [&](const Event& event) {
    EXPECT_EQ(event.error, nullptr) << event.error->what();
    if (event.finished != nullptr) result = *event.finished;
    return true;
  };
  GenerateOptions options = greedy(28);
  options.speculative_tokens = 8;
  scheduler.add(scheduler.request({1, Ids(100, 1), options, sink, false}));
  while (scheduler.step()) {
  }
  options.speculative_tokens = 0;
  EXPECT_EQ(result.ids, continued({model}, Ids(100, 1), options).ids);
}

TEST(Drafts, AreNamedIfTheirLogitsAreNotFinite) {
  const model::Transformer model = small_model(60);
  model::Transformer draft = other_model(60);
  draft.head.output.weight.value.data_as<float>()[0] = NAN;
  GenerateOptions options = greedy(10);
  options.speculative_tokens = 2;
  expect_error(ErrorKind::Failed, {"draft", "NaN"},
               [&] { continued({.model = model, .draft = &draft}, {1, 2}, options); });
}

}  // namespace
}  // namespace fovea::infer
