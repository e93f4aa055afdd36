// Requests of several adapters, which share one copy of the weights and the passes of a scheduler.

#include "transformer/adapters.h"

#include <gtest/gtest.h>

#include "generate/scheduler.h"
#include "support/expect_error.h"
#include "transformer/pack.h"
#include "unit/generate/requests.h"

namespace fovea::infer {
namespace {

using namespace test::requests;
using test::Ids;

// Returns a model that shares the base's weights, with random adapters, as add_adapter_sum() makes
// them, for every `every`-th layer. Experts have adapters without DoRA only.
model::Transformer adapted(const model::Transformer& base, int64_t rank, bool dora, size_t every) {
  model::Transformer model = base;
  size_t number = 0;
  for (const auto& [name, layer] : model::linears_of(model)) {
    if (!model::can_be_adapted(name) || number++ % every != 0) continue;
    if (dora && name.find(".experts.") != name.npos) continue;
    model::add_adapter(*layer, {.rank = rank, .dora = dora});
    model::LowRankAdapter& adapter = layer->adapter;
    for (model::Parameter* p : {&adapter.down, &adapter.up, &adapter.magnitude}) {
      if (!p->present()) continue;
      p->value = empty(p->shape);
      Random random(number, Stream::init, static_cast<uint32_t>(p->role));
      for (int64_t i = 0; i < p->value.size(); ++i)
        p->value.data_as<float>()[i] = 0.5f * random.normal();
    }
    adapter.fixed = true;
  }
  return model;
}

// A base without adapters and two models with adapters of it.
struct Models {
  explicit Models(model::Transformer model)
      : all{model, adapted(model, 2, false, 1), adapted(model, 3, true, 2)}, joined(all[0]) {
    for (const size_t i : {1, 2}) model::add_alternative(joined, all[i]);
  }
  std::vector<model::Transformer> all;  // by the adapter of a request
  model::Transformer joined;
};

using Generations = std::map<std::pair<size_t, int64_t>, Generation>;  // by request and generation

size_t adapter_of(size_t request) { return request * 7 % 3; }

Generations alone(const Models& models, const std::vector<TestRequest>& requests,
                  const GenerationRules& rules) {
  Generations found;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto results = generate({models.all[adapter_of(i)], nullptr, rules}, requests[i].prompt,
                                  requests[i].options, {}, test::kPlenty);
    for (size_t a = 0; a < results.size(); ++a) found[{i, static_cast<int64_t>(a)}] = results[a];
  }
  return found;
}

Generations together(const Models& models, const std::vector<TestRequest>& requests,
                     const GenerationRules& rules, const SchedulerOptions& options, bool reversed) {
  Scheduler scheduler(models.joined, rules, nullptr, options);
  for (const size_t number : {1, 2}) EXPECT_EQ(scheduler.add_adapter(rules), number);
  Generations found;
  for (size_t n = 0; n < requests.size(); ++n) {
    const size_t i = reversed ? requests.size() - 1 - n : n;
    const auto sink = [&found, i](const Event& event) {
      EXPECT_EQ(event.error, nullptr) << event.error->what();
      if (event.finished != nullptr) found[{i, event.generation}] = *event.finished;
      return true;
    };
    scheduler.add(scheduler.request(
        {i + 1, requests[i].prompt, requests[i].options, sink, false, {}, adapter_of(i)}));
    if (n % 3 == 2) scheduler.step();
  }
  while (scheduler.step()) {
  }
  return found;
}

void expect_same_results(const Models& models, int64_t context, const GenerationRules& rules) {
  std::vector<TestRequest> requests = some_requests(18, context);
  for (TestRequest& asked : requests) {
    const int64_t room = context - std::ssize(asked.prompt);
    asked.options.max_tokens = std::min(asked.options.max_tokens, room);
    if (asked.options.beams == 1) asked.options.logprobs = 0;
  }
  const Generations expected = alone(models, requests, rules);
  for (const int64_t pages : {9, 400}) {  // with few pages, requests are evicted and read again
    for (const bool reversed : {false, true}) {
      const SchedulerOptions options{.pages = pages, .most_sequences = 16, .step_tokens = 48};
      const Generations found = together(models, requests, rules, options, reversed);
      ASSERT_EQ(found.size(), expected.size());
      for (const auto& [key, one] : expected)
        test::expect_same(found.at(key), one, fmt::format("request {}", key.first));
    }
  }
}

TEST(ServedAdapters, GiveTheSameResultsAloneAndInABatch) {
  for (const model::Transformer& model :
       {test::small_model(150), test::small_recurrent_model(150), test::small_latent_model(150)})
    expect_same_results(Models(model), 150, {.ends = {4}});
}

TEST(ServedAdapters, GiveTheSameResultsOverPackedWeights) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8}) {
    model::Transformer model = test::small_model(150);
    model::pack(model, format);
    expect_same_results(Models(model), 150, {.ends = {4}});
  }
}

// Adapters of experts were refused, although generate() computed with them.
TEST(ServedAdapters, OfExpertsGiveTheSameResultsAloneAndInABatch) {
  model::Spec spec = test::small_decoder({.vocabulary = 11, .context = 150});
  spec.head.tied = false;
  spec.decoder->ffn.experts = {.count = 3, .chosen = 2, .width = spec.decoder->ffn.width};
  model::Transformer model = test::made(model::validated(spec));
  expect_same_results(Models(model), 150, {.ends = {4}});
  model::pack(model, WeightFormat::int8);
  expect_same_results(Models(model), 150, {.ends = {4}});
}

TEST(ServedAdapters, TranslateTheSameAloneAndInABatch) {
  expect_same_results(Models(test::small_translator(150)), 40, {.ends = {4}, .start = 0});
}

// An adapter beyond the limit was refused after the layers had got its weights.
TEST(ServedAdapters, BeyondTheLimitAreRefusedBeforeTheirWeightsAreAdded) {
  const Models models(test::small_model(150));
  Scheduler scheduler(models.joined, {}, nullptr, {.pages = 9, .most_adapters = 2});
  for (int i = 0; i < 2; ++i) {
    scheduler.expect_room_for_adapter();
    scheduler.add_adapter({});
  }
  const auto refused = [](const std::function<void()>& call) {
    expect_error(ErrorKind::InvalidArgument, {"adapters: already 2"}, call);
  };
  refused([&] { scheduler.expect_room_for_adapter(); });
  refused([&] { scheduler.add_adapter({}); });
}

TEST(ServedAdapters, HaveAnEffect) {
  const Models models(test::small_model(150));
  std::vector<test::Floats> logits;
  for (const model::Transformer& model : models.all)
    logits.push_back(test::logits_after(model, {1, 2}));
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_NE(logits[0], logits[2]);
  EXPECT_EQ(test::logits_after(models.joined, {1, 2}), logits[0]);
}

TEST(ServedAdapters, ShareNoPagesWithOtherAdapters) {
  const Models models(test::small_model(300));
  Ids prompt;
  for (int i = 0; i < 200; ++i) prompt.push_back(i % 11);
  Scheduler scheduler(models.joined, {}, nullptr, {.pages = 40});
  for (int i = 0; i < 2; ++i) scheduler.add_adapter({});
  for (const int64_t cached : {0, 192}) {
    for (const size_t adapter : {1, 0, 2}) {
      Generation result;
      const auto sink = [&](const Event& event) {
        if (event.finished != nullptr) result = *event.finished;
        return true;
      };
      scheduler.add(scheduler.request({1, prompt, test::greedy(5), sink, false, {}, adapter}));
      while (scheduler.step()) {
      }
      EXPECT_EQ(result.cached_tokens, cached) << adapter;
      const Generation expected = test::continued({models.all[adapter]}, prompt, test::greedy(5));
      EXPECT_EQ(result.ids, expected.ids) << adapter;
    }
  }
}

TEST(ServedAdapters, EndAtTheirOwnTokens) {
  const Models models(test::small_model(150));
  const Ids prompt = {1, 2, 3};
  const Ids whole = test::continued({models.all[1]}, prompt, test::greedy(9)).ids;
  Scheduler scheduler(models.joined, {}, nullptr, {.pages = 9});
  scheduler.add_adapter({.ends = {whole[0]}});
  for (const size_t adapter : {0, 1}) {
    FinishReason finish = {};
    const auto sink = [&](const Event& event) {
      if (event.finished != nullptr) finish = event.finished->finish;
      return true;
    };
    scheduler.add(scheduler.request({1, prompt, test::greedy(9), sink, false, {}, adapter}));
    while (scheduler.step()) {
    }
    EXPECT_EQ(finish == FinishReason::end, adapter == 1);
  }
}

TEST(ServedAdapters, AreRefusedIfTheyDoNotFit) {
  const model::Transformer base = test::small_model();
  model::Transformer other = test::small_model();
  const model::Transformer one = adapted(base, 2, false, 1);
  expect_error(ErrorKind::InvalidArgument, {"embedding.token", "shares the base's weights"},
               [&] { model::add_alternative(other, one); });
  expect_error(ErrorKind::InvalidArgument, {"the base has an adapter"}, [&] {
    model::Transformer twice = one;
    model::add_alternative(twice, one);
  });
  Scheduler scheduler(base, {}, nullptr, {.pages = 9});
  expect_error(ErrorKind::InvalidArgument, {"adapter 1", "expected 0 to 0"}, [&] {
    scheduler.request({1, {1}, test::greedy(1), [](const Event&) { return true; }, false, {}, 1});
  });
}

}  // namespace
}  // namespace fovea::infer
