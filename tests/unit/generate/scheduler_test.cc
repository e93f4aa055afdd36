// Concurrent requests: a result never depends on other requests, on shared or evicted pages, or on
// the time of arrival.

#include "generate/scheduler.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "support/expect_error.h"
#include "unit/generate/small_models.h"

namespace fovea {
namespace {

using test::Ids;

struct Asked {
  Ids prompt;
  GenerateOptions options;
};

// Prompts of many lengths, some with a common prefix; sampled, greedy, several samples, beams.
std::vector<Asked> some_requests(size_t count, int64_t context) {
  Random random(7, Stream::init);
  std::vector<Asked> all;
  for (size_t i = 0; i < count; ++i) {
    Asked asked;
    const int64_t length = 1 + random.word() % (static_cast<uint32_t>(context) * 2 / 3);
    for (int64_t t = 0; t < length; ++t)
      asked.prompt.push_back(i % 3 == 0 ? static_cast<int32_t>(t % 11)
                                        : static_cast<int32_t>(random.word() % 11));
    GenerateOptions& options = asked.options;
    options.max_tokens = 1 + random.word() % 40;
    options.sampling.seed = i;
    options.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    if (i % 5 == 1) options.answers = 3;
    if (i % 5 == 2) options.beams = 3, options.answers = 2;
    if (i % 7 == 3) options.guesses = 4;
    all.push_back(std::move(asked));
  }
  return all;
}

using Answers = std::map<uint64_t, std::map<int64_t, Ids>>;

// Submits a request every few steps.
Answers answers_of(const Transformer& model, const std::vector<Asked>& requests,
                   const SchedulerOptions& options, const GenerationRules& rules, int every) {
  Scheduler scheduler(model, rules, nullptr, options);
  Answers answers;
  size_t next = 0;
  for (int step = 0;; ++step) {
    if (next < requests.size() && step % every == 0) {
      const uint64_t number = next + 1;
      const auto sink = [&answers, number](const Event& event) {
        EXPECT_EQ(event.error, nullptr) << event.error;
        if (event.finished != nullptr) answers[number][event.answer] = event.finished->ids;
        return true;
      };
      scheduler.add(
          scheduler.request({number, requests[next].prompt, requests[next].options, sink, false}));
      ++next;
    }
    if (!scheduler.step() && next == requests.size()) break;
  }
  EXPECT_EQ(scheduler.status().running, 0);
  return answers;
}

Answers alone(const Transformer& model, const std::vector<Asked>& requests,
              const GenerationRules& rules, DType cache = DType::f32) {
  Answers answers;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto results = generate({model, nullptr, rules, DType::f32, cache}, requests[i].prompt,
                                  requests[i].options, {}, test::kPlenty);
    for (size_t a = 0; a < results.size(); ++a)
      answers[i + 1][static_cast<int64_t>(a)] = results[a].ids;
  }
  return answers;
}

// Without the scheduler's limits: the text ends at the context instead of sliding.
void limit(std::vector<Asked>& requests, int64_t context) {
  for (Asked& asked : requests) {
    asked.options.max_tokens =
        std::min(asked.options.max_tokens, context - std::ssize(asked.prompt));
  }
}

TEST(Schedulers, GiveTheSameResultsAloneAndInABatch) {
  const Transformer model = test::small_model(150);
  std::vector<Asked> requests = some_requests(24, 150);
  limit(requests, 150);
  const GenerationRules rules{.ends = {4}};
  const Answers expected = alone(model, requests, rules);
  for (const int64_t pages :
       {9, 30, 400}) {  // with the fewest pages, requests are evicted and read again
    for (const int64_t step_tokens : {16, 512}) {
      for (const int every : {1, 4}) {
        const SchedulerOptions options{
            .pages = pages, .most_sequences = 16, .step_tokens = step_tokens};
        EXPECT_EQ(answers_of(model, requests, options, rules, every), expected)
            << pages << " pages, " << step_tokens << " tokens, every " << every;
      }
    }
  }
}

TEST(Schedulers, GiveTheSameResultsFromARoundedCache) {
  const Transformer model = test::small_model(150);
  std::vector<Asked> requests = some_requests(24, 150);
  limit(requests, 150);
  const GenerationRules rules{.ends = {4}};
  for (const DType cache : {DType::bf16, DType::i8}) {
    const Answers expected = alone(model, requests, rules, cache);
    for (const int64_t pages : {9, 400}) {
      const SchedulerOptions options{
          .cache = cache, .pages = pages, .most_sequences = 16, .step_tokens = 16};
      EXPECT_EQ(answers_of(model, requests, options, rules, 1), expected)
          << name_of(cache) << ", " << pages << " pages";
    }
  }
}

TEST(Schedulers, TranslateTheSameAloneAndInABatch) {
  const Transformer model = test::small_translator();
  std::vector<Asked> requests = some_requests(20, 40);
  for (Asked& asked : requests) asked.options.max_tokens = 20;
  const GenerationRules rules{.ends = {4}, .start = 0};
  for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
    const Answers expected = alone(model, requests, rules, cache);
    for (const int64_t pages : {6, 100}) {
      const SchedulerOptions options{
          .cache = cache, .pages = pages, .most_sequences = 16, .step_tokens = 64};
      EXPECT_EQ(answers_of(model, requests, options, rules, 1), expected) << pages;
    }
  }
}

TEST(Schedulers, ReadACommonPrefixOnce) {
  const Transformer model = test::small_model(300);
  Ids prompt;
  for (int i = 0; i < 200; ++i) prompt.push_back(i % 11);
  Scheduler scheduler(model, {}, nullptr, {.pages = 20});
  std::vector<Generation> results;
  const auto ask = [&] {
    const auto sink = [&](const Event& event) {
      if (event.finished != nullptr) results.push_back(*event.finished);
      return true;
    };
    scheduler.add(scheduler.request({1, prompt, test::greedy(5), sink, false}));
    while (scheduler.step()) {
    }
  };
  ask();
  ask();
  EXPECT_EQ(results[0].cached_tokens, 0);
  EXPECT_EQ(results[1].cached_tokens, 192);
  EXPECT_EQ(results[0].ids, results[1].ids);
  prompt[70] = 5;
  ask();
  EXPECT_EQ(results[2].cached_tokens, 64);
  EXPECT_EQ(scheduler.status().cached_tokens, 192 + 64);
}

// A regression: texts on either side of the original context, whose keys are rotated differently,
// shared pages.
TEST(Schedulers, ShareNothingIfRotationsDependOnTheLength) {
  Spec spec = test::small_model(300).spec;
  spec.decoder->position.kind = PositionKind::rotary;
  spec.decoder->position.rotary.scaling = RotaryScaling::dynamic;
  spec.decoder->position.rotary.factor = 3;
  spec.decoder->position.rotary.original_context = 100;
  const Transformer model = test::made(validated(spec));
  std::vector<Asked> requests(2);
  for (int i = 0; i < 80; ++i) requests[0].prompt.push_back(i % 11);
  requests[1].prompt = requests[0].prompt;
  requests[0].options = test::greedy(5);
  requests[1].options = test::greedy(100);
  const Answers expected = alone(model, requests, {});
  EXPECT_EQ(answers_of(model, requests, {.pages = 20, .most_sequences = 1}, {}, 1), expected);
}

TEST(Schedulers, FreeEveryPage) {
  const Transformer model = test::small_model(150);
  Scheduler scheduler(model, {}, nullptr, {.pages = 30});
  uint64_t number = 0;
  for (const Asked& asked : some_requests(12, 100)) {
    scheduler.add(scheduler.request({++number, asked.prompt, asked.options, {}, false}));
    scheduler.step();
    if (number % 3 == 0) scheduler.cancel(number);
  }
  while (scheduler.step()) {
  }
  // The pages in use are kept for later prompts and can all be evicted.
  Ids longest(149, 1);
  scheduler.add(scheduler.request({99, longest, test::greedy(1), {}, false}));
  while (scheduler.step()) {
  }
  EXPECT_EQ(scheduler.status().running, 0);
  EXPECT_EQ(scheduler.waiting(), 0);
}

TEST(Schedulers, RefuseRequestsThatCannotFit) {
  const Transformer model = test::small_model(300);
  Scheduler scheduler(model, {}, nullptr, {.pages = 2, .most_sequences = 4});
  const auto refused = [&](const Ids& prompt, const GenerateOptions& options,
                           std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::InvalidArgument, parts, [&] {
      scheduler.request({1, prompt, options, {}, false});
    });
  };
  refused(Ids(301, 1), test::greedy(1), {"prompt: 301 tokens", "at most 300"});
  refused(Ids(128, 1), test::greedy(1),
          {"prompt: 128 tokens and an answer need 3 pages", "at most 2"});
  GenerateOptions many = test::greedy(1);
  many.answers = 5;
  refused({1}, many, {"5 answers or beams", "at most 4"});
}

// With a cache smaller than the context, a request was accepted and then failed.
TEST(Schedulers, EndTextsAtTheCacheLimit) {
  const Transformer model = test::small_model(300);
  for (const int64_t pages : {1, 2, 3, 4}) {
    for (const int64_t answers : {1, 2, 3}) {
      for (const bool beams : {false, true}) {
        for (const size_t length : {1, 63, 64, 100, 127}) {
          Scheduler scheduler(model, {}, nullptr, {.pages = pages});
          const int64_t room = scheduler.room(std::ssize(Ids(length)), answers);
          GenerateOptions options = test::greedy(-1);
          options.answers = answers;
          if (beams) options.beams = answers;
          std::vector<int64_t> written;
          const auto sink = [&](const Event& event) {
            EXPECT_EQ(event.error, nullptr) << event.error;
            if (event.finished == nullptr) return true;
            EXPECT_EQ(event.finished->finish, "length");
            written.push_back(std::ssize(event.finished->ids));
            return true;
          };
          const auto ask = [&] {
            scheduler.add(scheduler.request({1, Ids(length, 1), options, sink, false}));
          };
          if (room < 1) {
            expect_error(ErrorKind::InvalidArgument, {"prompt:", "pages of 64 tokens"}, ask);
            continue;
          }
          ask();
          while (scheduler.step()) {
          }
          EXPECT_EQ(written, std::vector<int64_t>(static_cast<size_t>(answers), room))
              << pages << " pages, " << answers << " results, prompt of " << length;
        }
      }
    }
  }
}

TEST(Schedulers, ReportAFullCache) {
  const Transformer model = test::small_model(300);
  Scheduler scheduler(model, {}, nullptr, {.pages = 2});
  std::string error;
  const auto sink = [&](const Event& event) {
    if (event.error != nullptr) error = event.error;
    return true;
  };
  scheduler.add(scheduler.request({1, Ids(100, 1), test::greedy(100), sink, true}));
  while (scheduler.step()) {
  }
  EXPECT_NE(error.find("cache of keys and values is full"), std::string::npos);
}

// A constraint that throws, exhausted memory or a sink that throws ends its own request only. Any
// exception other than Error once ended the engine's thread.
TEST(Schedulers, FailAlone) {
  const Transformer model = test::small_model(150);
  const Asked one{{1, 2, 3}, test::greedy(20)};
  const Answers expected = alone(model, {one}, {});
  Scheduler scheduler(model, {}, nullptr, {.pages = 30});
  std::map<uint64_t, std::string> errors;
  Answers answers;
  for (uint64_t number = 1; number <= 5; ++number) {
    Asked asked = one;
    if (number % 2 == 0) {
      asked.options.constrain = [number](const std::vector<int32_t>& written, float*, int64_t) {
        if (written.size() < 5) return;
        if (number == 2) throw Error(ErrorKind::InvalidArgument, "schema: too much");
        throw std::bad_alloc();
      };
    }
    const auto sink = [&, number](const Event& event) {
      if (number == 5 && event.id >= 0) throw std::runtime_error("nobody listens");
      if (event.error != nullptr) {
        errors[number] = fmt::format("{}: {}", static_cast<int>(event.error_kind), event.error);
      }
      if (event.finished != nullptr) answers[number][event.answer] = event.finished->ids;
      return true;
    };
    scheduler.add(scheduler.request({number, asked.prompt, asked.options, sink, false}));
  }
  while (scheduler.step()) {
  }
  EXPECT_EQ(answers.size(), 2u);
  for (const uint64_t number : {1, 3}) EXPECT_EQ(answers[number], expected.at(1));
  EXPECT_EQ(errors[2],
            fmt::format("{}: schema: too much", static_cast<int>(ErrorKind::InvalidArgument)));
  EXPECT_TRUE(errors[4].starts_with(fmt::format("{}: ", static_cast<int>(ErrorKind::OutOfMemory))));
  EXPECT_NE(errors[5].find("nobody listens"), std::string::npos);
  EXPECT_EQ(scheduler.status().running, 0);
  EXPECT_EQ(scheduler.status().cache_used_bytes, 0);
}

}  // namespace
}  // namespace fovea
