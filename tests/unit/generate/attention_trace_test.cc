// The trace of a generated token equals that of a pass over the entire text, and tracing does not
// change the results.

#include "generate/attention_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "generate/scheduler.h"
#include "support/expect_error.h"
#include "unit/generate/small_models.h"

namespace fovea::infer {
namespace {

using test::Ids;

// The traced results of one pass over an entire text.
struct Traced {
  std::map<std::string, Tensor> found;

  Traced(const model::Transformer& model, const Ids& ids) {
    const NoGradient off;
    const model::Probe probe{.see = [this](const model::ProbePoint& point,
                                           const Tensor& x) { found[model::name_of(point)] = x; },
                             .wants_weights = [](const model::ProbePoint&) { return true; }};
    model::Pass pass = test::causal_pass();
    pass.probe = &probe;
    const Tensor x = empty({1, std::ssize(ids)}, DType::i32);
    std::copy(ids.begin(), ids.end(), x.data_as<int32_t>());
    model.hidden(x, pass);
  }
  // Returns the weights of one head for the token at a position: those above 0, by key.
  std::map<int32_t, float> weights(int64_t layer, int64_t head, int64_t position) const {
    const Tensor& all = found.at(fmt::format("attention.{}", layer));  // [1, H, T, S]
    std::map<int32_t, float> seen;
    for (int64_t s = 0; s <= position; ++s) {
      const float w = all.data_as<float>()[(head * all.dim(2) + position) * all.dim(3) + s];
      if (w > 0) seen[static_cast<int32_t>(s)] = w;
    }
    return seen;
  }
  std::vector<float> hidden(int64_t layer, int64_t position) const {
    const Tensor& x = found.at(fmt::format("hidden.{}", layer));  // [1, T, C]
    return to_floats(x.view({x.dim(1), x.dim(2)}).rows(position, position + 1));
  }
};

struct Shown {
  Ids ids;
  std::vector<AttentionTrace> trace;
};

GenerateOptions options_of(size_t i) {
  GenerateOptions options = test::greedy(12);
  options.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
  options.sampling.seed = i;
  if (i % 3 == 1) options.generations = 2;
  if (i % 4 > 1) options.speculative_tokens = i % 4 == 2 ? 3 : -1;
  return options;
}

Ids prompt_of(size_t i) {
  Ids prompt;
  for (size_t t = 0; t < 3 + 17 * (i % 5); ++t)
    prompt.push_back(static_cast<int32_t>((t + i) % 11));
  return prompt;
}

// Returns the first result of each request; if `trace`, every second request is traced.
std::vector<Shown> generations(const model::Transformer& model, bool trace) {
  std::vector<Shown> all(8);
  Scheduler scheduler(model, {}, nullptr, {.pages = 40, .most_sequences = 16, .step_tokens = 32});
  for (size_t i = 0; i < all.size(); ++i) {
    Task task{i + 1, prompt_of(i), options_of(i), {}, false, {}};
    task.sink = [&all, i](const Event& event) {
      if (event.generation != 0) return true;
      if (event.trace != nullptr) all[i].trace.push_back(*event.trace);
      if (event.finished != nullptr) all[i].ids = event.finished->ids;
      return true;
    };
    if (trace && i % 2 == 0) {
      task.trace.attention = {1, static_cast<int64_t>(i / 2) % 2, i < 4 ? 1000 : 2};
      task.trace.hidden = static_cast<int64_t>(i / 2) % 3;
    }
    scheduler.add(scheduler.request(std::move(task)));
  }
  while (scheduler.step()) {
  }
  return all;
}

void expect_traced(const model::Transformer& model, const std::string& name) {
  const std::vector<Shown> plain = generations(model, false), shown = generations(model, true);
  for (size_t i = 0; i < shown.size(); ++i) {
    EXPECT_EQ(shown[i].ids, plain[i].ids) << name;
    ASSERT_EQ(shown[i].trace.size(), i % 2 == 0 ? shown[i].ids.size() : 0) << name;
    Ids whole = prompt_of(i);
    const int64_t first = std::ssize(whole) - 1;
    whole.insert(whole.end(), shown[i].ids.begin(), shown[i].ids.end());
    const Traced traced(model, whole);
    for (size_t t = 0; t < shown[i].trace.size(); ++t) {
      const int64_t position = first + static_cast<int64_t>(t),
                    head = static_cast<int64_t>(i / 2) % 2;
      const AttentionTrace& trace = shown[i].trace[t];
      EXPECT_EQ(trace.hidden, traced.hidden(static_cast<int64_t>(i / 2) % 3, position)) << name;
      const auto all = traced.weights(1, head, position);
      const std::map<int32_t, float> found(trace.keys.begin(), trace.keys.end());
      if (i < 4) {
        EXPECT_EQ(found, all) << name;
      } else {
        ASSERT_EQ(found.size(), std::min<size_t>(2, all.size())) << name;
        EXPECT_EQ(trace.keys[0].second,
                  std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
                    return a.second < b.second;
                  })->second);
        EXPECT_GE(trace.keys[0].second, trace.keys.back().second) << name;
        for (const auto& [key, weight] : found) EXPECT_EQ(weight, all.at(key)) << name;
      }
    }
  }
}

TEST(AttentionTracer, MatchesAPassOverTheEntireText) {
  model::Spec base = test::small_model(150).spec;
  for (const auto& [name, spec] : test::mixtures(base))
    if (spec.decoder->mixers.empty() && spec.decoder->layers > 1)
      expect_traced(test::made(spec), name);
  base.decoder->position.kind = model::PositionKind::rotary;
  expect_traced(test::made(model::validated(base)), "rotary");
  base.decoder->position.bias = model::DistanceBias::alibi;
  base.decoder->position.kind = model::PositionKind::none;
  expect_traced(test::made(model::validated(base)), "alibi");
}

TEST(AttentionTracer, CountsTheTokensOfTheTarget) {
  const model::Transformer model = test::small_translator();
  Scheduler scheduler(model, {.start = 2}, nullptr, {.pages = 40});
  std::vector<AttentionTrace> all;
  Task task{1, {3, 4, 5}, test::greedy(6), {}, false, {}};
  task.sink = [&](const Event& event) {
    if (event.trace != nullptr) all.push_back(*event.trace);
    return true;
  };
  task.trace.attention = {0, 1, 100};
  task.trace.hidden = 2;
  scheduler.add(scheduler.request(std::move(task)));
  while (scheduler.step()) {
  }
  ASSERT_EQ(all.size(), 6u);
  for (size_t t = 0; t < all.size(); ++t) {
    EXPECT_EQ(all[t].keys.size(), t + 1);
    EXPECT_EQ(all[t].hidden.size(), 12u);
  }
}

TEST(AttentionTracer, RefusesMissingLayersAndHeads) {
  const model::Transformer model = test::small_model();
  Scheduler scheduler(model, {}, nullptr, {.pages = 40});
  const auto ask = [&](const AttentionTraceOptions& trace, int64_t beams = 1) {
    GenerateOptions options = test::greedy(3);
    options.beams = beams;
    scheduler.request({1, {1}, options, {}, false, trace});
  };
  const auto attention = [](int64_t layer, int64_t head, int64_t top_k) {
    AttentionTraceOptions trace;
    trace.attention = {layer, head, top_k};
    return trace;
  };
  AttentionTraceOptions hidden;
  hidden.hidden = 3;
  const auto wrong = ErrorKind::InvalidArgument;
  expect_error(wrong, {"layer 2", "0 to 1"}, [&] { ask(attention(2, 0, 1)); });
  expect_error(wrong, {"layer -1"}, [&] { ask(attention(-1, 0, 1)); });
  expect_error(wrong, {"head 2", "0 to 1"}, [&] { ask(attention(0, 2, 1)); });
  expect_error(wrong, {"top_k 0"}, [&] { ask(attention(0, 0, 0)); });
  expect_error(wrong, {"layer 3", "0 to 2"}, [&] { ask(hidden); });
  expect_error(wrong, {"beams"}, [&] { ask(attention(0, 0, 1), 3); });
}

}  // namespace
}  // namespace fovea::infer
