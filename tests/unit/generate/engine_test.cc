#include "generate/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/random.h"
#include "base/threads.h"
#include "tensor/tape.h"
#include "text/character_trainer.h"
#include "unit/base/expect_error.h"
#include "unit/model/mixtures.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;

TEST(StopWatches, NeverLetAPartOfAStopStringOut) {
  Random random(1, Stream::init);
  const auto below = [&](size_t count) { return random.word() % count; };
  const auto text_of = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += "ab"[below(2)];
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = below(4); i > 0; --i) stops.push_back(text_of(below(6)));
    const std::string text = text_of(below(25));

    // By definition: cut before the stop string that is complete first, the longest of several.
    std::string expected = text;
    bool stops_here = false;
    for (size_t end = 1; end <= text.size() && !stops_here; ++end) {
      for (const std::string& stop : stops) {
        if (stop.empty() || !text.substr(0, end).ends_with(stop)) continue;
        stops_here = true;
        expected = std::min(expected, text.substr(0, end - stop.size()),
                            [](auto& a, auto& b) { return a.size() < b.size(); });
      }
    }

    StopWatch watch(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      const size_t piece = below(5);
      shown += watch.add(std::string_view(text).substr(at, piece));
      at += piece;
      ASSERT_TRUE(expected.starts_with(shown)) << text << " showed " << shown;
    }
    if (!watch.stopped()) shown += watch.finish();
    ASSERT_EQ(watch.stopped(), stops_here) << text;
    ASSERT_EQ(shown, expected) << text;
    stopped += stops_here;
    EXPECT_EQ(watch.finish(), "");
    if (stops_here) {
      EXPECT_EQ(watch.add("more"), "");
    }
  }
  EXPECT_GT(stopped, 2000);
}

Transformer small_model(int64_t context = 8, int64_t vocabulary = 11) {
  Spec spec;
  spec.vocabulary = vocabulary;
  spec.context = context;
  spec.width = 12;
  spec.decoder->layers = 2;
  spec.decoder->attention.heads = 2;
  spec.head.tied = false;  // else a random model says the same token over and over
  return test::made(validated(spec));
}

Floats logits_of(const Engine& engine) {
  return {engine.logits(), engine.logits() + engine.vocabulary()};
}

// Without a cache, from the beginning.
Floats logits_after(const Transformer& model, const Ids& ids, DType compute) {
  const NoGradient off;
  const Tensor x = empty({1, std::ssize(ids)}, DType::i32);
  std::copy(ids.begin(), ids.end(), x.data_as<int32_t>());
  const Tensor hidden = model.hidden(x, test::causal_pass(compute)).view({std::ssize(ids), 12});
  return to_floats(model.logits(hidden.rows(std::ssize(ids) - 1, std::ssize(ids))));
}

Ids some(size_t count) {
  Ids ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(i * i % 11));
  return ids;
}

TEST(Engines, GoOnPastTheContext) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const int64_t context : {1, 2, 7, 8}) {
      const Transformer model = small_model(context);
      Engine engine(model, compute);
      Ids window;
      for (const int32_t id : some(30)) {
        engine.read({id});
        window.push_back(id);
        if (std::ssize(window) > context)  // the newer half stays
          window.erase(window.begin(), window.end() - std::max<int64_t>(1, context / 2));
        ASSERT_EQ(logits_of(engine), logits_after(model, window, compute)) << context;
      }
    }
  }
}

TEST(Engines, ReadAPromptInAnyPieces) {
  const Transformer model = small_model();
  const Ids ids = some(8);
  Engine whole(model, DType::f32), pieces(model, DType::f32), longer(model, DType::f32);
  whole.read(ids);
  pieces.read({ids.begin(), ids.begin() + 3});
  pieces.read({ids.begin() + 3, ids.end()});
  EXPECT_EQ(logits_of(whole), logits_of(pieces));
  EXPECT_EQ(logits_of(whole), logits_after(model, ids, DType::f32));
  const Ids many = some(50);  // of a prompt beyond the context the end is read
  longer.read(many);
  EXPECT_EQ(logits_of(longer), logits_after(model, {many.end() - 4, many.end()}, DType::f32));
}

TEST(Engines, RefuseIdsThatAreNoneAndGoOn) {
  const Transformer model = small_model();
  Engine engine(model, DType::f32);
  engine.read({1, 2});
  const Floats before = logits_of(engine);
  for (const int32_t bad : {11, -1}) {
    expect_error(ErrorKind::InvalidArgument, {"prompt: token id " + std::to_string(bad), "0 to 10"},
                 [&] {
                   engine.read({3, bad});
                 });
  }
  EXPECT_EQ(logits_of(engine), before);
  engine.read({3});
  EXPECT_EQ(logits_of(engine), logits_after(model, {1, 2, 3}, DType::f32));
}

GenerateOptions greedy(int64_t tokens) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = tokens;
  return options;
}

TEST(Generating, GreedilyTakesTheLikeliestTokenEachTime) {
  const Transformer model = small_model(40);
  const int threads = thread_count();
  for (const DType compute : {DType::f32, DType::bf16}) {
    Ids ids{1, 2, 3};
    for (int n = 0; n < 30; ++n) {
      const Floats logits = logits_after(model, ids, compute);
      ids.push_back(
          static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    EXPECT_GT(std::set(ids.begin(), ids.end()).size(), 3u);
    for (const int count : {1, 2}) {
      set_thread_count(count);
      const Generation result = generate_ids(model, compute, {}, {1, 2, 3}, greedy(30));
      EXPECT_EQ(result.ids, Ids(ids.begin() + 3, ids.end()));
      EXPECT_EQ(result.finish, "length");
      EXPECT_EQ(result.prompt_tokens, 3);
      EXPECT_TRUE(result.text.empty());
    }
  }
  set_thread_count(threads);
}

TEST(Generating, DrawsTheSameForTheSameSeed) {
  const Transformer model = small_model();
  const auto drawn = [&](uint64_t seed) {
    GenerateOptions options;
    options.sampling.seed = seed;
    options.max_tokens = 40;  // past the context
    return generate_ids(model, DType::f32, {}, {1}, options).ids;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Generating, EndsAtAnEndToken) {
  const Transformer model = small_model();
  const Ids free = generate_ids(model, DType::f32, {}, {1}, greedy(6)).ids;
  const int32_t end = free[2];
  const auto first = std::find(free.begin(), free.end(), end);
  const Generation result = generate_ids(model, DType::f32, {end}, {1}, greedy(-1));
  EXPECT_EQ(result.ids, Ids(free.begin(), first));
  EXPECT_EQ(result.finish, "end");
  GenerateOptions past = greedy(6);
  past.ignore_end = true;
  EXPECT_EQ(generate_ids(model, DType::f32, {end}, {1}, past).ids, free);
}

TEST(Generating, RefusesWhatItCannotContinue) {
  const Transformer model = small_model();
  EXPECT_TRUE(generate_ids(model, DType::f32, {}, {1}, greedy(0)).ids.empty());
  expect_error(ErrorKind::InvalidArgument, {"-n: -2", "-1"},
               [&] { generate_ids(model, DType::f32, {}, {1}, greedy(-2)); });
  expect_error(ErrorKind::InvalidArgument, {"prompt: no tokens"},
               [&] { generate_ids(model, DType::f32, {}, {}, greedy(1)); });
}

class TextTest : public testing::Test {
 protected:
  TextTest() {
    CharacterTrainer trainer;
    trainer.add("abcdefgh\n");
    tokenizer_ = trainer.train({});
    model_ = small_model(16, tokenizer_->size());
  }
  Generation generate(const GenerateOptions& options, const TextSink& sink = {}) {
    return generate_text(model_, *tokenizer_, DType::f32, {}, "ab", options, sink);
  }

  std::optional<Tokenizer> tokenizer_;
  Transformer model_;
};

GenerateOptions sampled(int64_t tokens) {
  GenerateOptions options;
  options.sampling.temperature = 2;
  options.max_tokens = tokens;
  return options;
}

TEST_F(TextTest, StreamsExactlyTheText) {
  std::string streamed;
  const Generation result = generate(sampled(40), [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(result.text, streamed);
  EXPECT_EQ(result.text, tokenizer_->decode(result.ids));
  EXPECT_EQ(result.finish, "length");
}

TEST_F(TextTest, StopsBeforeAStopString) {
  const std::string free = generate(sampled(40)).text;
  const std::string stop = free.substr(10, 3);
  ASSERT_GT(free.find(stop), 4u);
  GenerateOptions options = sampled(40);
  options.stop = {"not there", "", stop};
  std::string streamed;
  const Generation result = generate(options, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(result.text, free.substr(0, free.find(stop)));
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.finish, "stop");
}

TEST_F(TextTest, StopsWhenTheReaderHasEnough) {
  int pieces = 0;
  const Generation result = generate(sampled(40), [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(result.finish, "stop");
  EXPECT_EQ(pieces, 3);
}

TEST_F(TextTest, BeginsAnEmptyPromptWithALineBreak) {
  const auto text = [&](const std::string& prompt) {
    return generate_text(model_, *tokenizer_, DType::f32, {}, prompt, greedy(5), {}).text;
  };
  EXPECT_EQ(text(""), text("\n"));
}

}  // namespace
}  // namespace fovea
