// The result of a request never depends on other requests, on shared or evicted pages, or on the
// time of arrival.

#include "generate/scheduler.h"

#include <gtest/gtest.h>

#include <map>

#include "fovea/core/random.h"
#include "support/expect_error.h"
#include "unit/generate/requests.h"

namespace fovea::infer {
namespace {

using namespace test::requests;
using test::Ids;

// Limits max_tokens so that the text fits into the context, since these requests do not slide the
// window.
void limit(std::vector<TestRequest>& requests, int64_t context) {
  for (TestRequest& asked : requests) {
    asked.options.max_tokens =
        std::min(asked.options.max_tokens, context - std::ssize(asked.prompt));
  }
}

TEST(Schedulers, GiveTheSameResultsAloneAndInABatch) {
  for (const model::Transformer& model :
       {test::small_model(150), test::small_recurrent_model(150), test::small_latent_model(150)}) {
    std::vector<TestRequest> requests = some_requests(24, 150);
    limit(requests, 150);
    const GenerationRules rules{.ends = {4}};
    const Results expected = alone(model, requests, rules);
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
}

// The texts are much longer than the windows, so that pages are released.
TEST(Schedulers, GiveTheSameResultsAfterPagesWereReleased) {
  constexpr int64_t kContext = 400;
  for (const model::Transformer& model :
       {test::small_windowed_model(kContext), test::small_recurrent_model(kContext)}) {
    std::vector<TestRequest> requests = some_requests(16, kContext);
    limit(requests, kContext);
    for (const DType cache : {DType::f32, DType::i8}) {
      const Results expected = alone(model, requests, {}, cache);
      for (const int64_t pages : {24, 40, 400}) {  // with the fewest pages, requests are evicted
        for (const int64_t step_tokens : {16, 512}) {
          const SchedulerOptions options{
              .cache = cache, .pages = pages, .most_sequences = 6, .step_tokens = step_tokens};
          EXPECT_EQ(answers_of(model, requests, options, {}, 1), expected)
              << pages << " pages, " << step_tokens << " tokens, " << name_of(cache);
        }
      }
    }
  }
}

// A layer with a window has as many pages as a text of any length can use.
TEST(Schedulers, NeedNoMoreMemoryForLongerTextsIfAllLayersHaveLimitedReach) {
  model::Spec spec = test::small_windowed_model(2000).spec;
  spec.decoder->attention.windows = {20};
  const model::Transformer model = test::made(model::validated(spec));
  SchedulerOptions options{.pages = model::pages_for(300), .most_sequences = 1, .step_tokens = 16};
  const int64_t bytes = cache_bytes(model, options);
  options.pages = model::pages_for(2000);
  EXPECT_EQ(cache_bytes(model, options), bytes * 6 / 5);  // 6 pages instead of 5
  EXPECT_EQ(pages_within(static_cast<uint64_t>(bytes * 6 / 5), model, options), options.pages);
  EXPECT_EQ(pages_within(static_cast<uint64_t>(bytes), model, options), 5);
  Scheduler scheduler(model, {}, nullptr, options);
  EXPECT_EQ(scheduler.status().cache_bytes, bytes * 6 / 5);
  const Ids prompt(900, 3);
  Ids ids;
  const auto sink = [&](const Event& event) {
    EXPECT_EQ(event.error, nullptr) << event.error->what();
    if (event.finished != nullptr) ids = event.finished->ids;
    return true;
  };
  scheduler.add(scheduler.request({1, prompt, test::greedy(300), sink, false}));
  while (scheduler.step()) EXPECT_LE(scheduler.status().cache_used_bytes, bytes * 6 / 5);
  ASSERT_EQ(ids.size(), 300u);
  Ids before = prompt;
  before.insert(before.end(), ids.begin(), ids.end() - 1);
  EXPECT_EQ(ids.back(), test::most_likely(test::logits_after(model, before)));
}

TEST(Schedulers, GiveTheSameResultsFromARoundedCache) {
  for (const model::Transformer& model :
       {test::small_model(150), test::small_recurrent_model(150), test::small_latent_model(150)}) {
    std::vector<TestRequest> requests = some_requests(24, 150);
    limit(requests, 150);
    const GenerationRules rules{.ends = {4}};
    for (const DType cache : {DType::bf16, DType::i8}) {
      const Results expected = alone(model, requests, rules, cache);
      for (const int64_t pages : {9, 400}) {
        const SchedulerOptions options{
            .cache = cache, .pages = pages, .most_sequences = 16, .step_tokens = 16};
        EXPECT_EQ(answers_of(model, requests, options, rules, 1), expected)
            << name_of(cache) << ", " << pages << " pages";
      }
    }
  }
}

TEST(Schedulers, TranslateTheSameAloneAndInABatch) {
  const model::Transformer model = test::small_translator();
  std::vector<TestRequest> requests = some_requests(20, 40);
  for (TestRequest& asked : requests) asked.options.max_tokens = 20;
  const GenerationRules rules{.ends = {4}, .start = 0};
  for (const DType cache : {DType::f32, DType::bf16, DType::i8}) {
    const Results expected = alone(model, requests, rules, cache);
    for (const int64_t pages : {6, 100}) {
      const SchedulerOptions options{
          .cache = cache, .pages = pages, .most_sequences = 16, .step_tokens = 64};
      EXPECT_EQ(answers_of(model, requests, options, rules, 1), expected) << pages;
    }
  }
}

TEST(Schedulers, ReadACommonPrefixOnce) {
  for (const model::Transformer& model :
       {test::small_model(300), test::small_recurrent_model(300), test::small_latent_model(300),
        test::small_windowed_model(300)}) {
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
}

// Regression: the prefix was looked up when a request was admitted, so that agents that began
// together each read their common system prompt.
TEST(Schedulers, PromptsThatArriveTogetherReadACommonPrefixOnce) {
  const model::Transformer model = test::small_model(300);
  constexpr int64_t kRequests = 4;
  Scheduler scheduler(model, {}, nullptr, {.pages = 40, .step_tokens = 64});
  std::map<int32_t, Generation> results;
  for (int32_t n = 0; n < kRequests; ++n) {
    Ids prompt;
    for (int i = 0; i < 200; ++i) prompt.push_back(i % 11);
    prompt[150] = n;
    const auto sink = [&results, n](const Event& event) {
      if (event.finished != nullptr) results[n] = *event.finished;
      return true;
    };
    scheduler.add(
        scheduler.request({static_cast<uint64_t>(n), prompt, test::greedy(5), sink, false}));
  }
  while (scheduler.step()) {
  }
  EXPECT_EQ(results[0].cached_tokens, 0);
  for (int32_t n = 1; n < kRequests; ++n) EXPECT_EQ(results[n].cached_tokens, 128) << n;
  EXPECT_EQ(scheduler.status().prompt_tokens, 200 + (kRequests - 1) * (200 - 128));
}

TEST(Schedulers, FreeEveryPage) {
  const model::Transformer model = test::small_model(150);
  Scheduler scheduler(model, {}, nullptr, {.pages = 30});
  uint64_t number = 0;
  for (const TestRequest& asked : some_requests(12, 100)) {
    scheduler.add(scheduler.request({++number, asked.prompt, asked.options, {}, false}));
    scheduler.step();
    if (number % 3 == 0) scheduler.cancel(number);
  }
  while (scheduler.step()) {
  }
  // Pages of finished texts are kept for later prompts, but texts that need all pages still run at
  // the same time.
  for (int32_t i = 0; i < 10; ++i) {
    Ids prompt(130, 1);
    prompt[0] = i;  // no common prefix, so each text needs three pages
    scheduler.add(scheduler.request({uint64_t(100 + i), prompt, test::greedy(10), {}, false}));
  }
  int64_t running = 0;
  while (scheduler.step()) running = std::max(running, scheduler.status().running);
  EXPECT_EQ(running, 10);
  EXPECT_EQ(scheduler.status().running, 0);
  EXPECT_EQ(scheduler.waiting(), 0);
}

TEST(Schedulers, RefuseRequestsThatCannotFit) {
  const model::Transformer model = test::small_model(300);
  Scheduler scheduler(model, {}, nullptr, {.pages = 2, .most_sequences = 4});
  const auto refused = [&](const Ids& prompt, const GenerateOptions& options,
                           std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::InvalidArgument, parts,
                 [&] { scheduler.request({1, prompt, options, {}, false}); });
  };
  refused(Ids(301, 1), test::greedy(1), {"prompt: 301 tokens", "at most 300"});
  refused(Ids(128, 1), test::greedy(1),
          {"prompt: 128 tokens and the first generated tokens need 3 pages", "at most 2"});
  GenerateOptions many = test::greedy(1);
  many.generations = 5;
  refused({1}, many, {"5 generations or beams", "at most 4"});
}

TEST(Schedulers, ReportAFullCache) {
  const model::Transformer model = test::small_model(300);
  Scheduler scheduler(model, {}, nullptr, {.pages = 2});
  std::string error;
  const auto sink = [&](const Event& event) {
    if (event.error != nullptr) error = event.error->what();
    return true;
  };
  scheduler.add(scheduler.request({1, Ids(100, 1), test::greedy(100), sink, true}));
  while (scheduler.step()) {
  }
  EXPECT_NE(error.find("key-value cache is full"), std::string::npos);
}

}  // namespace
}  // namespace fovea::infer
