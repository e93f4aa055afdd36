#include "generate/scheduler.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "support/expect_error.h"
#include "unit/generate/requests.h"

namespace fovea {
namespace {

using namespace test::requests;
using test::Ids;

// With dynamic scaling of rotary positions, a result depended on earlier requests: texts shorter
// and longer than the original context shared pages, although their keys are rotated differently.
TEST(ConcurrentRequests, ShareNothingIfRotationsDependOnTheLength) {
  model::Spec spec = test::small_model(300).spec;
  spec.decoder->position.kind = model::PositionKind::rotary;
  spec.decoder->position.rotary.scaling = model::RotaryScaling::dynamic;
  spec.decoder->position.rotary.factor = 3;
  spec.decoder->position.rotary.original_context = 100;
  const model::Transformer model = test::made(model::validated(spec));
  std::vector<TestRequest> requests(2);
  for (int i = 0; i < 80; ++i) requests[0].prompt.push_back(i % 11);
  requests[1].prompt = requests[0].prompt;
  requests[0].options = test::greedy(5);
  requests[1].options = test::greedy(100);
  const Results expected = alone(model, requests, {});
  EXPECT_EQ(answers_of(model, requests, {.pages = 20, .most_sequences = 1}, {}, 1), expected);
}

// With a cache smaller than the context, the server accepted a request and later responded with
// status 500. The text now ends when the cache is full.
TEST(ConcurrentRequests, EndTextsAtTheCacheLimit) {
  const model::Transformer model = test::small_model(300);
  for (const int64_t pages : {1, 2, 3, 4}) {
    for (const int64_t generations : {1, 2, 3}) {
      for (const bool beams : {false, true}) {
        for (const size_t length : {1, 63, 64, 100, 127}) {
          infer::Scheduler scheduler(model, {}, nullptr, {.pages = pages});
          const int64_t room = scheduler.room(std::ssize(Ids(length)), generations);
          infer::GenerateOptions options = test::greedy(-1);
          options.generations = generations;
          if (beams) options.beams = generations;
          std::vector<int64_t> written;
          const auto sink = [&](const infer::Event& event) {
            EXPECT_EQ(event.error, nullptr) << event.error->what();
            if (event.finished == nullptr) return true;
            EXPECT_EQ(event.finished->finish, infer::FinishReason::length);
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
          EXPECT_EQ(written, std::vector<int64_t>(static_cast<size_t>(generations), room))
              << pages << " pages, " << generations << " results, prompt of " << length;
        }
      }
    }
  }
}

// An exception of a constraint, of a sink or of exhausted memory stopped the server for all
// clients: any exception other than Error ended the engine's thread. An exception now
// ends only its own request.
TEST(ConcurrentRequests, FailAlone) {
  const model::Transformer model = test::small_model(150);
  const TestRequest one{{1, 2, 3}, test::greedy(20)};
  const Results expected = alone(model, {one}, {});
  infer::Scheduler scheduler(model, {}, nullptr, {.pages = 30});
  std::map<uint64_t, std::string> errors;
  Results generations;
  for (uint64_t number = 1; number <= 5; ++number) {
    TestRequest asked = one;
    if (number % 2 == 0) {
      asked.options.constrain = [number](std::span<const int32_t> written, std::span<float>) {
        if (written.size() < 5) return;
        if (number == 2) throw Error(ErrorKind::InvalidArgument, "schema: too much");
        throw std::bad_alloc();
      };
    }
    const auto sink = [&, number](const infer::Event& event) {
      if (number == 5 && event.id >= 0) throw std::runtime_error("nobody listens");
      if (event.error != nullptr) {
        errors[number] =
            fmt::format("{}: {}", static_cast<int>(event.error->kind()), event.error->what());
      }
      if (event.finished != nullptr) generations[number][event.generation] = event.finished->ids;
      return true;
    };
    scheduler.add(scheduler.request({number, asked.prompt, asked.options, sink, false}));
  }
  while (scheduler.step()) {
  }
  EXPECT_EQ(generations.size(), 2u);
  for (const uint64_t number : {1, 3}) EXPECT_EQ(generations[number], expected.at(1));
  EXPECT_EQ(errors[2],
            fmt::format("{}: schema: too much", static_cast<int>(ErrorKind::InvalidArgument)));
  EXPECT_TRUE(errors[4].starts_with(fmt::format("{}: ", static_cast<int>(ErrorKind::OutOfMemory))));
  EXPECT_NE(errors[5].find("nobody listens"), std::string::npos);
  EXPECT_EQ(scheduler.status().running, 0);
  EXPECT_EQ(scheduler.status().cache_used_bytes, 0);
}

}  // namespace
}  // namespace fovea
