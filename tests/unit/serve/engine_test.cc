// An engine that receives submissions, cancellations and status requests from many threads.

#include "fovea/infer/engine.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fovea/core/error.h"
#include "fovea/train/train.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;

model::Model small_model(int64_t layers, uint64_t seed) {
  model::Spec spec =
      test::small_decoder({.vocabulary = 0, .context = 64, .width = 16, .layers = layers});
  spec.head.tied = false;
  return model::Model::create(spec, text::Tokenizer::open("tests/goldens/translation_tokenizers"),
                              seed);
}

infer::GenerateOptions some_options(int i) {
  infer::GenerateOptions options;
  options.max_tokens = 6 + i % 9;
  options.ignore_end = true;
  options.generations = 1 + i % 2;
  options.speculative_tokens = i % 5 - 1;
  options.sampling.seed = static_cast<uint64_t>(i);
  options.sampling.temperature = i % 3 == 0 ? 0.0f : 1.0f;
  return options;
}

// Collects the results of the requests of all threads.
class Generations {
 public:
  infer::Engine::Sink sink(int request) {
    return [this, request](const infer::Event& event) {
      EXPECT_EQ(event.error, nullptr) << event.error->what();
      const std::lock_guard lock(mutex_);
      if (event.finished != nullptr) found_[{request, event.generation}] = event.finished->ids;
      changed_.notify_all();
      return true;
    };
  }
  Ids wait_for(int request, int64_t generation) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return found_.contains({request, generation}); });
    return found_[{request, generation}];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int64_t>, Ids> found_;
};

TEST(Engines, ServeManyThreads) {
  constexpr int kThreads = 6, kRequests = 12;
  const model::Model model = small_model(2, 1);
  Generations generations;
  infer::Engine engine(model,
                       {.cache_bytes = 1 << 20, .most_sequences = 5, .draft = small_model(1, 2)});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = thread * kRequests; i < (thread + 1) * kRequests; ++i) {
        const Ids prompt(static_cast<size_t>(1 + i % 40), i % 7 + 1);
        const bool leaves = i % 5 == 4;
        const uint64_t number = engine.submit(prompt, some_options(i),
                                              leaves ? infer::Engine::Sink() : generations.sink(i));
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
    infer::GenerateOptions options = some_options(i);
    options.speculative_tokens = 0;
    const std::vector<infer::Generation> alone = infer::generate(model, prompt, options);
    for (size_t generation = 0; generation < alone.size(); ++generation)
      EXPECT_EQ(generations.wait_for(i, static_cast<int64_t>(generation)), alone[generation].ids)
          << i;
  }
}

// Trains an adapter of the model in `base` for two steps.
void train_adapter(const std::string& base, const std::string& out, uint64_t seed) {
  train::TrainOptions options;
  options.data = {out + ".txt"};
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the eye of a fox sees " + std::to_string(i) + ". ";
  std::ofstream(options.data[0]) << text;
  options.from = base;
  options.out = out;
  options.lora.rank = 2;
  options.steps = 2;
  options.batch = 1;
  options.length = 16;
  options.warmup = 0;
  options.learning_rate = 1;
  options.validation = 0;  // otherwise a run that ends worse keeps its start
  options.sample_tokens = 0;
  options.seed = seed;
  train::train({}, options);
}

TEST(Engines, TakeAdaptersWhileRequestsRun) {
  const TemporaryFolder folder;
  small_model(2, 1).save(folder / "base");
  const model::Model base = model::Model::open(folder / "base");
  std::vector<model::Model> models = {base};
  for (uint64_t seed : {1, 2}) {
    const std::string out = folder / std::to_string(seed);
    train_adapter(folder / "base", out, seed);
    models.push_back(base.with_adapters({{out}}));
  }
  constexpr int kRequests = 30;
  Generations generations;
  infer::Engine engine(base, {.cache_bytes = 1 << 20, .most_sequences = 4});
  const auto submit = [&](size_t model) {
    for (int i = 0; i < kRequests; ++i)
      EXPECT_NE(engine.submit({1, 2, i % 7 + 1}, some_options(i),
                              generations.sink(static_cast<int>(model) * kRequests + i), {}, model),
                0u);
  };
  std::vector<std::thread> threads;
  threads.emplace_back(submit, 0);
  for (const size_t number : {1, 2}) {
    EXPECT_EQ(engine.add(models[number]), number);
    threads.emplace_back(submit, number);
  }
  for (std::thread& thread : threads) thread.join();
  std::set<Ids> different;
  for (int i = 0; i < 3 * kRequests; ++i) {
    infer::GenerateOptions options = some_options(i % kRequests);
    options.speculative_tokens = 0;
    const model::Model& model = models[static_cast<size_t>(i / kRequests)];
    const Ids expected = infer::generate(model, Ids{1, 2, i % kRequests % 7 + 1}, options)[0].ids;
    EXPECT_EQ(generations.wait_for(i, 0), expected) << i;
    if (i % kRequests == 0) different.insert(expected);
  }
  EXPECT_EQ(different.size(), 3u) << "the adapters change the results";
  expect_error(ErrorKind::InvalidArgument, {"shares the base's weights"},
               [&] { engine.add(model::Model::open(folder / "base")); });
  expect_error(ErrorKind::InvalidArgument, {"adapter 3; expected 0 to 2"},
               [&] { engine.submit({1}, {}, generations.sink(0), {}, 3); });
}

TEST(Engines, CanBeDestroyedWithRunningRequests) {
  Generations generations;
  for (int i = 0; i < 5; ++i) {
    infer::Engine engine(small_model(1, 3), {.cache_bytes = 1 << 20, .most_sequences = 2});
    for (int request = 0; request < 6; ++request)
      engine.submit({1, 2, 3}, some_options(request), generations.sink(request));
  }
}

TEST(Engines, RefuseAnEncoderDecoderAsDraftOfADecoder) {
  model::Spec spec = small_model(1, 3).spec();
  spec.encoder = spec.decoder;
  const text::Tokenizer tokenizer = text::Tokenizer::open("tests/goldens/translation_tokenizers");
  infer::EngineOptions options;
  options.draft = model::Model::create(spec, tokenizer, 1);
  EXPECT_THROW(infer::Engine(small_model(1, 3), options), Error);
}

}  // namespace
}  // namespace fovea
