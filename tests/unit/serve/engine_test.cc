// An engine that receives submissions, cancellations and status requests from many threads.

#include "fovea/engine.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "fovea/error.h"
#include "support/small_spec.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;

Model small_model(int64_t layers, uint64_t seed) {
  Spec spec = test::small_decoder({.vocabulary = 0, .context = 64, .width = 16, .layers = layers});
  spec.head.tied = false;
  return Model::create(spec, Tokenizer::open("tests/goldens/translation_tokenizers"), seed);
}

GenerateOptions some_options(int i) {
  GenerateOptions options;
  options.max_tokens = 6 + i % 9;
  options.ignore_end = true;
  options.answers = 1 + i % 2;
  options.guesses = i % 5 - 1;
  options.sampling.seed = static_cast<uint64_t>(i);
  options.sampling.temperature = i % 3 == 0 ? 0.0f : 1.0f;
  return options;
}

// Collects the results of the requests of all threads.
class Answers {
 public:
  Engine::Sink sink(int request) {
    return [this, request](const Event& event) {
      EXPECT_EQ(event.error, nullptr) << event.error->what();
      const std::lock_guard lock(mutex_);
      if (event.finished != nullptr) found_[{request, event.answer}] = event.finished->ids;
      changed_.notify_all();
      return true;
    };
  }
  Ids wait_for(int request, int64_t answer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return found_.contains({request, answer}); });
    return found_[{request, answer}];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int64_t>, Ids> found_;
};

TEST(Engines, ServeManyThreads) {
  constexpr int kThreads = 6, kRequests = 12;
  const Model model = small_model(2, 1);
  Answers answers;
  Engine engine(model, {.cache_bytes = 1 << 20, .most_sequences = 5, .draft = small_model(1, 2)});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = thread * kRequests; i < (thread + 1) * kRequests; ++i) {
        const Ids prompt(static_cast<size_t>(1 + i % 40), i % 7 + 1);
        const bool leaves = i % 5 == 4;
        const uint64_t number =
            engine.submit(prompt, some_options(i), leaves ? Engine::Sink() : answers.sink(i));
        EXPECT_NE(number, 0u);
        if (leaves) engine.cancel(number);
        EXPECT_GE(engine.status().requests, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads * kRequests; ++i) {
    if (i % 5 == 4) continue;
    const Ids prompt(static_cast<size_t>(1 + i % 40), i % 7 + 1);
    GenerateOptions options = some_options(i);
    options.guesses = 0;
    const std::vector<Generation> alone = generate(model, prompt, options);
    for (size_t answer = 0; answer < alone.size(); ++answer)
      EXPECT_EQ(answers.wait_for(i, static_cast<int64_t>(answer)), alone[answer].ids) << i;
  }
}

TEST(Engines, CanBeDestroyedWithRunningRequests) {
  Answers answers;
  for (int i = 0; i < 5; ++i) {
    Engine engine(small_model(1, 3), {.cache_bytes = 1 << 20, .most_sequences = 2});
    for (int request = 0; request < 6; ++request)
      engine.submit({1, 2, 3}, some_options(request), answers.sink(request));
  }
}

TEST(Engines, RefuseAnEncoderDecoderAsDraftOfADecoder) {
  Spec spec = small_model(1, 3).spec();
  spec.encoder = spec.decoder;
  const Tokenizer tokenizer = Tokenizer::open("tests/goldens/translation_tokenizers");
  EngineOptions options;
  options.draft = Model::create(spec, tokenizer, 1);
  EXPECT_THROW(Engine(small_model(1, 3), options), Error);
}

}  // namespace
}  // namespace fovea
