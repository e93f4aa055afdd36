#pragma once

// Requests to a scheduler, and their results when run together or alone.

#include <gtest/gtest.h>

#include <map>

#include "fovea/core/random.h"
#include "generate/scheduler.h"
#include "unit/generate/small_models.h"

namespace fovea::test::requests {

struct TestRequest {
  Ids prompt;
  infer::GenerateOptions options;
};

// Returns requests with prompts of many lengths, some with a common prefix, for greedy decoding,
// one or several samples, and beam search.
inline std::vector<TestRequest> some_requests(size_t count, int64_t context) {
  Random random(7, Stream::init);
  std::vector<TestRequest> all;
  for (size_t i = 0; i < count; ++i) {
    TestRequest asked;
    const int64_t length = 1 + random.word() % (static_cast<uint32_t>(context) * 2 / 3);
    for (int64_t t = 0; t < length; ++t)
      asked.prompt.push_back(i % 3 == 0 ? static_cast<int32_t>(t % 11)
                                        : static_cast<int32_t>(random.word() % 11));
    infer::GenerateOptions& options = asked.options;
    options.max_tokens = 1 + random.word() % 40;
    options.sampling.seed = i;
    options.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    if (i % 5 == 1) options.generations = 3;
    if (i % 5 == 2) options.beams = 3, options.generations = 2;
    options.speculative_tokens = i % 7 == 3 ? 4 : -1;
    all.push_back(std::move(asked));
  }
  return all;
}

using Results = std::map<uint64_t, std::map<int64_t, Ids>>;

// Submits one request every `every` steps and returns the results.
inline Results answers_of(const model::Transformer& model, const std::vector<TestRequest>& requests,
                          const infer::SchedulerOptions& options,
                          const infer::GenerationRules& rules, int every) {
  infer::Scheduler scheduler(model, rules, nullptr, options);
  Results generations;
  size_t next = 0;
  for (int step = 0;; ++step) {
    if (next < requests.size() && step % every == 0) {
      const uint64_t number = next + 1;
      const auto sink = [&generations, number](const infer::Event& event) {
        EXPECT_EQ(event.error, nullptr) << event.error->what();
        if (event.finished != nullptr) generations[number][event.generation] = event.finished->ids;
        return true;
      };
      scheduler.add(
          scheduler.request({number, requests[next].prompt, requests[next].options, sink, false}));
      ++next;
    }
    if (!scheduler.step() && next == requests.size()) break;
  }
  EXPECT_EQ(scheduler.status().running, 0);
  return generations;
}

inline Results alone(const model::Transformer& model, const std::vector<TestRequest>& requests,
                     const infer::GenerationRules& rules, DType cache = DType::f32) {
  Results generations;
  for (size_t i = 0; i < requests.size(); ++i) {
    infer::GenerateOptions options = requests[i].options;
    options.speculative_tokens = 0;
    const auto results = infer::generate({model, nullptr, rules, DType::f32, cache},
                                         requests[i].prompt, options, {}, kPlenty);
    for (size_t a = 0; a < results.size(); ++a)
      generations[i + 1][static_cast<int64_t>(a)] = results[a].ids;
  }
  return generations;
}

}  // namespace fovea::test::requests
