#include "fovea/train/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/mixer.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "transformer/transformer.h"

namespace fovea::train {
namespace {

struct Published {
  const char* preset;
  int64_t parameters;
};

class PublishedTest : public testing::TestWithParam<Published> {};

// Compares with the sizes of published checkpoints; a tied head is counted once, and the pooler of
// an encoder and the bias of BART's logits are included. For the original Transformer, the paper
// states 65 and 213 million.
TEST_P(PublishedTest, HasThePublishedSize) {
  EXPECT_EQ(plan(model::preset(GetParam().preset)).parameters, GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Presets, PublishedTest,
    testing::Values(Published{"gpt2", 124439808}, Published{"gpt2-medium", 354823168},
                    Published{"gpt2-large", 774030080}, Published{"gpt2-xl", 1557611200},
                    Published{"gpt3", 174604259328}, Published{"llama2-7b", 6738415616},
                    Published{"llama2-13b", 13015864320}, Published{"llama2-70b", 68976648192},
                    Published{"llama3-8b", 8030261248}, Published{"mistral-7b", 7241732096},
                    Published{"mixtral-8x7b", 46702792704}, Published{"bert-base", 109482240},
                    Published{"bert-large", 335141888}, Published{"roberta-base", 124645632},
                    Published{"distilbert", 66362880}, Published{"transformer-base", 63045632},
                    Published{"transformer-big", 214171648}, Published{"t5-small", 60506624},
                    Published{"t5-base", 222903552}, Published{"t5-large", 737668096},
                    Published{"t5-3b", 2851598336}, Published{"t5-11b", 11307321344},
                    Published{"bart-base", 139470681}, Published{"bart-large", 406341721},
                    Published{"vit-base", 86389248}, Published{"vit-large", 304351232},
                    Published{"vit-huge", 632404480}, Published{"whisper-tiny", 37760640},
                    Published{"whisper-base", 72593920}, Published{"whisper-small", 241734912},
                    Published{"whisper-medium", 763857920}, Published{"whisper-large", 1543304960},
                    Published{"whisper-large-v3", 1543490560}),
    [](const auto& c) {
      std::string name = c.param.preset;
      for (char& letter : name)
        if (letter == '-') letter = '_';
      return name;
    });

const PlanPart& part(const Plan& plan, const std::string& name) {
  for (const PlanPart& part : plan.parts)
    if (part.name == name) return part;
  throw std::logic_error("no part is called " + name);
}

TEST(Plan, CountsTheParametersOfTheModel) {
  for (const std::string name : {"t5-small", "whisper-tiny", "bart-base", "vit-base", "gpt2"}) {
    model::Spec spec = model::validated(model::preset(name));
    for (model::StackSpec* stack :
         {spec.encoder ? &*spec.encoder : nullptr, spec.decoder ? &*spec.decoder : nullptr}) {
      if (stack == nullptr) continue;
      stack->layers = 5;
      stack->ffn.experts.count = 4;
      stack->ffn.experts.width = 100;
      stack->ffn.experts.dense_layers = {0, 3};
      stack->ffn.experts.selection_bias = stack->ffn.experts.shared_gate = true;
      stack->ffn.experts.shared = 2;
      stack->first_norm = false;
    }
    model::Transformer model(model::validated(spec));
    EXPECT_EQ(plan(spec).parameters, model::parameter_count(model)) << name;
  }
}

TEST(Plan, CountsWeightsOfSeveralLayersOnce) {
  model::Spec spec = model::preset("bert-base");
  const Plan separate = plan(spec);
  spec.encoder->layer_groups = 3;
  const Plan shared = plan(spec);
  model::Transformer model(model::validated(spec));
  EXPECT_EQ(shared.parameters, model::parameter_count(model));
  EXPECT_EQ(4 * part(shared, "attention").parameters, part(separate, "attention").parameters);
  EXPECT_EQ(part(shared, "attention").flops, part(separate, "attention").flops);
}

TEST(Plan, SplitsParametersIntoParts) {
  const Plan gpt = plan(model::preset("gpt2"));
  EXPECT_EQ(part(gpt, "token embedding").parameters, 50257 * 768);
  EXPECT_EQ(part(gpt, "positions").parameters, 1024 * 768);
  EXPECT_EQ(part(gpt, "attention").parameters, 12 * 4 * (768 * 768 + 768));
  EXPECT_EQ(part(gpt, "feed-forward").parameters, 12 * (8 * 768 * 768 + 5 * 768));
  EXPECT_EQ(part(gpt, "norms").parameters, 25 * 2 * 768);
  EXPECT_EQ(part(gpt, "head").parameters, 0);  // tied to the embedding
  EXPECT_EQ(gpt.active, gpt.parameters);

  model::Spec spec = model::preset("gpt2");
  spec.decoder->norm.kind = model::NormKind::dyt;
  spec.decoder->ffn.experts = {
      .count = 8, .width = 96, .selection_bias = true, .shared = 3, .shared_gate = true};
  const Plan shared = plan(spec);
  EXPECT_EQ(part(shared, "norms").parameters, 25 * (2 * 768 + 1));
  EXPECT_EQ(part(shared, "router").parameters, 12 * 8 * (768 + 1));
  const int64_t matrices = 2 * 3 * 96 * 768;
  const PlanPart& together = part(shared, "shared experts");
  EXPECT_EQ(together.parameters, 12 * (matrices + 3 * 96 + 768 + 768));  // biases, gate
  EXPECT_EQ(together.active, together.parameters);
  EXPECT_DOUBLE_EQ(together.flops,
                   2.0 * 12 * static_cast<double>((matrices + 768) * shared.length));

  const Plan experts = plan(model::preset("mixtral-8x7b"));
  EXPECT_EQ(part(experts, "experts").parameters, 32ll * 8 * 3 * 4096 * 14336);
  EXPECT_EQ(part(experts, "experts").active, 32ll * 2 * 3 * 4096 * 14336);
  EXPECT_EQ(part(experts, "router").parameters, 32 * 8 * 4096);
  EXPECT_EQ(experts.active, 12879925248);  // the 12.9 billion of Jiang et al. 2024
}

TEST(Plan, CountsProductsOfADecoder) {
  PlanOptions options;
  options.length = 100;
  const Plan p = plan(model::preset("gpt2"), options);
  const double matrices = 12.0 * 12 * 768 * 768 + 50257.0 * 768;
  const double scores = 12 * 4.0 * 768 * (100 * 101 / 2);
  EXPECT_DOUBLE_EQ(p.flops, 2 * matrices * 100 + scores);
  EXPECT_DOUBLE_EQ(p.flops_per_token, p.flops / 100);
  EXPECT_DOUBLE_EQ(part(p, "attention scores").flops, scores);
  EXPECT_DOUBLE_EQ(p.training.flops, 3 * p.flops_per_token * p.training.tokens);
  EXPECT_DOUBLE_EQ(p.training.rule_flops, 6.0 * 124439808 * p.training.tokens);
}

TEST(Plan, CountsProductsAcrossStacks) {
  PlanOptions options;
  options.length = 10;
  options.source_length = 30;
  const Plan p = plan(model::preset("t5-small"), options);
  const double square = 512.0 * 512, S = 30, T = 10;
  const double encoder = 6 * (4 * square + 8 * square) * S;
  const double decoder = 6 * ((4 + 8 + 2) * square * T + 2 * square * S);
  const double scores = 6 * 4.0 * 512 * (S * S + T * (T + 1) / 2 + S * T);
  EXPECT_DOUBLE_EQ(p.flops, 2 * (encoder + decoder + 32128.0 * 512 * T) + scores);
  EXPECT_DOUBLE_EQ(p.flops_per_token, p.flops / 40);
}

TEST(Plan, CountsProductsOfInputs) {
  const Plan image = plan(model::preset("vit-base"));
  EXPECT_EQ(image.length, 197);
  EXPECT_EQ(image.source_length, 0);
  EXPECT_DOUBLE_EQ(part(image, "input").flops, 2.0 * 196 * 768 * 768);
  EXPECT_DOUBLE_EQ(part(image, "head").flops, 2.0 * 768 * 768);  // applied to a single vector
  const Plan audio = plan(model::preset("whisper-tiny"));
  EXPECT_DOUBLE_EQ(part(audio, "input").flops, 2.0 * 3 * 384 * (3000 * 80 + 1500 * 384));
}

TEST(Plan, CountsPairsOfQueryAndKey) {
  for (const int64_t length : {1, 2, 7, 20})
    for (const bool causal : {false, true})
      for (const int64_t window : {0, 1, 3, 7, 19, 30})
        for (const int64_t global : {0, 1, 4, 25}) {
          int64_t pairs = 0;
          for (int64_t q = 0; q < length; ++q)
            for (int64_t k = 0; k < (causal ? q + 1 : length); ++k)
              pairs += window == 0 || std::abs(q - k) < window || k < global || q < global;
          EXPECT_EQ(attention_pairs(length, causal, window, window == 0 ? 0 : global), pairs)
              << length << " " << causal << " " << window << " " << global;
        }
}

TEST(Plan, ComputesTheSizeOfTheCache) {
  PlanOptions options;
  options.batch = 3;
  const Plan grouped = plan(model::preset("llama2-70b"), options);
  EXPECT_EQ(grouped.memory.cache_per_token.bf16, 2 * 80 * 8 * 128 * 2);
  EXPECT_EQ(grouped.memory.cache.bf16, 3 * 4096.0 * grouped.memory.cache_per_token.bf16);
  const Plan window = plan(model::preset("mistral-7b"));
  // The window, twice the most speculative tokens, their ends, and the prompt tokens of a step.
  const int64_t pages = (4096 + 2 * 64) / 64 + 2 + 512 / 64;
  EXPECT_EQ(window.memory.cache.fp32,
            static_cast<double>(64 * pages) * window.memory.cache_per_token.fp32);
  PlanOptions brief;
  brief.length = 100;
  EXPECT_EQ(plan(model::preset("mistral-7b"), brief).memory.cache.fp32,
            100 * window.memory.cache_per_token.fp32);
  const Plan across = plan(model::preset("t5-small"));
  EXPECT_EQ(across.memory.cache.fp32, (512 + 512) * across.memory.cache_per_token.fp32);
  EXPECT_EQ(plan(model::preset("bert-base")).memory.cache.fp32, 0);
}

// Two layers with states, a convolution and attention.
model::Spec mixture() {
  model::Spec spec = test::small_decoder({.context = 256, .width = 64, .layers = 4, .heads = 4});
  model::StackSpec& d = *spec.decoder;
  d.mixers = {model::MixerKind::gated_delta, model::MixerKind::state_space,
              model::MixerKind::convolution, model::MixerKind::attention};
  d.delta = {.heads = 4, .key_heads = 2, .key_width = 16, .value_width = 32};
  d.state_space = {.heads = 8, .head_width = 16, .groups = 2, .state_width = 32};
  d.convolution = {.width = 64, .tokens = 3};
  return model::validated(spec);
}

TEST(Plan, CountsTheCacheOfStatesAsItIsAllocated) {
  const model::Spec spec = mixture();
  const MemoryPlan memory = plan(spec).memory;
  for (const auto& [dtype, planned] :
       {std::pair(DType::f32, memory.cache.fp32), {DType::bf16, memory.cache.bf16}}) {
    const model::PagePool::Layout layout = model::page_layout(*spec.decoder, dtype);
    EXPECT_EQ(planned,
              static_cast<double>(model::PagePool::bytes_of(layout, {.pages = 4, .texts = 1})));
  }
}

TEST(Plan, CountsTheOperationsOfStates) {
  PlanOptions options;
  options.length = 10;
  const Plan p = plan(mixture(), options);
  const double delta = 64 * (2 * 32 + 2 * 128 + 128 + 2 * 4), state = 64 * (3 * 128 + 2 * 64 + 8);
  // A state is read, also by keys with the delta rule, and written; 32.5 tokens are seen.
  const double mixing = 4 * (3 * 16 * 32 + 2 * 32.5 * (16 + 32)) + 4 * (64 + 128) +
                        8 * (2 * 16 * 32 + 32.5 * (16 + 32)) + 4 * (128 + 128);
  EXPECT_DOUBLE_EQ(part(p, "linear attention").flops, 2 * 10 * (delta + state + mixing));
  EXPECT_DOUBLE_EQ(part(p, "convolution").flops, 2 * 10 * (4 * 64 * 64 + 3 * 64));
  EXPECT_DOUBLE_EQ(part(p, "attention scores").flops, 4 * 64 * (10 * 11 / 2));
}

TEST(Plan, EstimatesTimeAndCostOfTraining) {
  PlanOptions options;
  options.tokens = 300e9;
  options.speed = 56e12;
  options.utilisation = 0.5;
  options.price = 1.5;
  options.devices = 1000;
  const TrainingPlan t = plan(model::preset("gpt3"), options).training;
  EXPECT_NEAR(t.rule_flops, 3.14e23, 0.005e23);
  EXPECT_NEAR(t.flops / t.rule_flops, 1.0136, 0.0001);  // attention, which 6 N omits
  EXPECT_DOUBLE_EQ(t.device_hours, t.flops / 28e12 / 3600);
  EXPECT_DOUBLE_EQ(t.seconds, t.device_hours * 3.6);
  EXPECT_DOUBLE_EQ(t.cost, t.device_hours * 1.5);
  EXPECT_NEAR(t.cost * t.rule_flops / t.flops, 4.6e6, 0.08e6);
}

TEST(Plan, RefusesOptionsOutOfRange) {
  const auto refused = [](const char* option, auto change) {
    PlanOptions options;
    change(options);
    expect_error(ErrorKind::InvalidArgument, {option, "expected"},
                 [&] { plan(model::preset("gpt2"), options); });
  };
  refused("length: ", [](PlanOptions& o) { o.length = 1025; });
  refused("batch: ", [](PlanOptions& o) { o.batch = 0; });
  refused("tokens: ", [](PlanOptions& o) { o.tokens = -1; });
  refused("speed: ", [](PlanOptions& o) { o.speed = std::nan(""); });
  refused("utilisation: ", [](PlanOptions& o) { o.utilisation = 1.5; });
  refused("price: ", [](PlanOptions& o) { o.price = -1; });
  refused("devices: ", [](PlanOptions& o) { o.devices = 0; });
  expect_error(ErrorKind::InvalidArgument, {"vocabulary is 0"},
               [] { plan(model::preset("nano")); });
  model::Spec huge = model::preset("gpt2");
  huge.width = 1 << 24;
  huge.decoder->attention.heads = 1 << 12;
  huge.decoder->attention.head_width = 1;
  huge.decoder->layers = 4096;
  huge.decoder->ffn.width = 1 << 24;
  huge.decoder->ffn.experts.count = 4096;
  expect_error(ErrorKind::InvalidArgument, {"experts", "parameters"}, [&] { plan(huge); });
}

TEST(ScalingLaws, MatchThePapers) {
  EXPECT_NEAR(kaplan_loss_of_size(2e9) / kaplan_loss_of_size(1e9), 0.9487, 1e-4);
  EXPECT_NEAR(kaplan_loss_of_data(2e9) / kaplan_loss_of_data(1e9), 0.9363, 1e-4);
  EXPECT_NEAR(kaplan_loss(1e9, 1e30), kaplan_loss_of_size(1e9), 1e-6);
  // Chinchilla: 70 billion parameters, 1.4 trillion tokens and 5.76e23 FLOPs.
  EXPECT_DOUBLE_EQ(optimal_tokens(70e9), 1.4e12);
  EXPECT_NEAR(optimal_parameters(5.76e23), 70e9, 1e9);
  EXPECT_NEAR(chinchilla_loss(70e9, 1.4e12), 1.937, 0.001);
}

}  // namespace
}  // namespace fovea::train
