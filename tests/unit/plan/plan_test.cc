#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "base/machine.h"
#include "plan/estimate.h"
#include "plan/speed.h"
#include "support/small_spec.h"
#include "tensor/tape.h"
#include "transformer/transformer.h"

namespace fovea::train {
namespace {

// Returns the peak of tensor memory in a step of a model, including its weights, gradients and
// moments.
size_t measured_peak(const model::Spec& spec, int64_t batch, DType compute, int64_t passes,
                     int64_t recompute = 0) {
  model::Transformer model(spec);
  model::initialise(model, 1);
  std::vector<Tensor> moments;
  model.each([&](const std::string&, model::Parameter& p) {
    p.value.want_gradient();
    moments.push_back(zeros(p.shape));
    moments.push_back(zeros(p.shape));
  });
  model::Pass pass;
  pass.compute = compute;
  pass.mask.causal = true;
  pass.training = true;
  pass.recompute = recompute;
  const Tensor ids = zeros({batch, spec.context}, DType::i32);
  const auto loss = [&] { return model.loss(model.hidden(ids, pass), {}, ids); };
  reset_peak_memory();
  if (passes == 1) {
    for (int call = 0; call < 2; ++call) backward(loss());  // the second call adds to the gradients
  } else {
    PassGradients gradients;
    for (int64_t n = 0; n < passes; ++n) gradients.backward(loss(), n);
    gradients.finish();
  }
  return tensor_memory().peak;
}

struct Case {
  std::string name;
  int64_t batch;
  DType compute;
  bool variant = false;  // with dropout, RMSNorm and a gated feed-forward layer
  int64_t passes = 1;
};
class EstimateTest : public testing::TestWithParam<Case> {};

TEST_P(EstimateTest, IsCloseToTheMeasuredPeak) {
  const auto& [name, batch, compute, variant, passes] = GetParam();
  model::Spec spec = model::preset(name);
  spec.vocabulary = 65;
  if (variant) {
    spec.dropout = {0.1f, 0.1f, 0.1f};
    spec.decoder->norm.kind = model::NormKind::rms;
    spec.decoder->ffn.gated = true;
    spec.decoder->ffn.activation = Activation::silu;
    spec.head.tied = false;
  }
  spec = model::validated(spec);
  const auto before = static_cast<double>(tensor_memory().live);
  const auto measured = static_cast<double>(measured_peak(spec, batch, compute, passes)) - before;
  const Cost cost = training_cost(spec, batch, spec.context, passes, compute);
  const auto planned =
      static_cast<double>(cost.weight_bytes + cost.optimizer_bytes + cost.activation_bytes);
  EXPECT_GT(planned, 0.75 * measured) << "measured " << measured << ", planned " << planned;
  EXPECT_LT(planned, 1.35 * measured) << "measured " << measured << ", planned " << planned;
}

INSTANTIATE_TEST_SUITE_P(
    Presets, EstimateTest,
    testing::Values(Case{"tiny", 16, DType::f32}, Case{"tiny", 16, DType::bf16},
                    Case{"nano", 12, DType::f32}, Case{"nano", 12, DType::bf16},
                    Case{"nano", 2, DType::f32}, Case{"nano", 12, DType::f32, true},
                    Case{"nano", 12, DType::bf16, true}, Case{"nano", 1, DType::f32, false, 5}),
    [](const auto& c) {
      return c.param.name + "_" + std::to_string(c.param.batch) + "_" +
             std::string(name_of(c.param.compute)) + (c.param.variant ? "_variant" : "") +
             (c.param.passes > 1 ? "_passes" : "");
    });

TEST(Cost, CountsBlocksOfLargeLogits) {
  for (const float softcap : {0.0f, 30.0f}) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      model::Spec spec = test::small_decoder(
          {.vocabulary = 65536, .context = 256, .width = 16, .layers = 1, .heads = 2});
      spec.head.softcap = softcap;
      spec = model::validated(spec);
      constexpr int64_t kBatch = 9;
      ASSERT_GT(kBatch * spec.context * spec.vocabulary, kLogitsAtOnce);
      const auto before = static_cast<double>(tensor_memory().live);
      const auto measured = static_cast<double>(measured_peak(spec, kBatch, compute, 1)) - before;
      const Cost cost = training_cost(spec, kBatch, spec.context, 1, compute);
      const auto planned =
          static_cast<double>(cost.weight_bytes + cost.optimizer_bytes + cost.activation_bytes);
      EXPECT_GT(planned, 0.75 * measured) << "measured " << measured << ", planned " << planned;
      EXPECT_LT(planned, 1.35 * measured) << "measured " << measured << ", planned " << planned;
    }
  }
}

// Disentangled attention stores its scores; their memory was not planned.
TEST(Cost, CountsTheScoresOfDisentangledAttention) {
  for (const float dropout : {0.0f, 0.1f})
    for (const DType compute : {DType::f32, DType::bf16}) {
      model::Spec spec = test::scaled_down(
          model::preset("bert-base"),
          {.vocabulary = 65, .context = 128, .width = 32, .layers = 4, .heads = 4}, 64);
      spec.encoder->position = {.kind = model::PositionKind::none,
                                .bias = model::DistanceBias::disentangled,
                                .buckets = 64,
                                .distance = 128};
      spec.head = {.bias = true};
      spec.dropout = {0, dropout, 0};
      spec = model::validated(spec);
      constexpr int64_t kBatch = 6;
      const auto before = static_cast<double>(tensor_memory().live);
      const auto measured = static_cast<double>(measured_peak(spec, kBatch, compute, 1)) - before;
      const Cost cost = training_cost(spec, kBatch, spec.context, 1, compute);
      const auto planned =
          static_cast<double>(cost.weight_bytes + cost.optimizer_bytes + cost.activation_bytes);
      EXPECT_GT(planned, 0.8 * measured) << "measured " << measured << ", planned " << planned;
      EXPECT_LT(planned, 1.25 * measured) << "measured " << measured << ", planned " << planned;
    }
}

TEST(Cost, CountsTheInputsOfLayersThatAreComputedAgain) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    model::Spec spec = test::small_llama(
        {.vocabulary = 65, .context = 128, .width = 64, .layers = 8, .heads = 4}, 256);
    spec = model::validated(spec);
    constexpr int64_t kBatch = 8;
    const auto activations = [&](int64_t layers) {
      const auto before = static_cast<double>(tensor_memory().live);
      const auto measured =
          static_cast<double>(measured_peak(spec, kBatch, compute, 1, layers)) - before;
      const Cost cost =
          training_cost(spec, kBatch, spec.context, 1, compute, {.recompute = layers});
      const auto planned =
          static_cast<double>(cost.weight_bytes + cost.optimizer_bytes + cost.activation_bytes);
      EXPECT_GT(planned, 0.8 * measured) << layers << " layers: " << measured << ", " << planned;
      EXPECT_LT(planned, 1.2 * measured) << layers << " layers: " << measured << ", " << planned;
      return cost.activation_bytes;
    };
    const uint64_t all = activations(-1), half = activations(4), none = activations(0);
    EXPECT_LT(all, none / 2);
    EXPECT_GT(half, all + (none - all) / 4);
    EXPECT_LT(half, none - (none - all) / 4);
  }
}

TEST(Cost, CountsPackedMoments) {
  model::Spec spec = model::preset("nano");
  spec.vocabulary = 65;
  spec = model::validated(spec);
  const Cost cost = training_cost(spec, 1, 64, 1, DType::f32, {.moments = {.packed = true}});
  const double without_rounding = (2 + 8.0 / 256) * static_cast<double>(cost.parameters);
  const double parameters = 4 * 16 + 4;  // each of them rounds its last block up
  EXPECT_GE(static_cast<double>(cost.optimizer_bytes), without_rounding);
  EXPECT_LE(static_cast<double>(cost.optimizer_bytes), without_rounding + 8 * parameters);
}

TEST(Cost, MatchesTheFormulas) {
  model::Spec spec = model::preset("nano");
  spec.vocabulary = 65;
  spec = model::validated(spec);
  const Cost one = training_cost(spec, 12, 64, 1, DType::f32);
  // Parameters: 12 C^2 + 13 C per layer, (65 + 64) C in the embeddings, 2 C in the final norm.
  EXPECT_EQ(one.parameters, 4 * (12 * 128 * 128 + 13 * 128) + (65 + 64) * 128 + 2 * 128);
  EXPECT_EQ(one.weight_bytes, static_cast<uint64_t>(one.parameters) * 8);
  EXPECT_EQ(one.optimizer_bytes, static_cast<uint64_t>(one.parameters) * 8);
  // FLOPs: 6 per element of a matrix and token, plus attention.
  const double matrices = 4.0 * 12 * 128 * 128 + 65 * 128;
  EXPECT_NEAR(one.flops_per_step, 12 * 64 * (6 * matrices + 3 * 4 * 4 * 128 * 32.5), 1);

  const Cost four = training_cost(spec, 3, 64, 4, DType::f32);
  EXPECT_NEAR(four.flops_per_step, one.flops_per_step, 1);     // the same samples
  EXPECT_LT(four.activation_bytes, one.activation_bytes / 3);  // a quarter of the batch at a time
  // Two partial sums are kept per gradient, four for the embedding, which is also the head, and its
  // gradient in a pass.
  EXPECT_EQ(four.weight_bytes, static_cast<uint64_t>(3 * one.parameters + 3 * 65 * 128) * 4);
}

TEST(Machine, ReportsSpeedAndMemory) {
  EXPECT_GT(measured_flops(DType::f32, 0.001), 0);
  EXPECT_TRUE(std::isfinite(measured_flops(DType::bf16, 0.001)));
  EXPECT_GT(measured_int8_operations(0.001), 0);
  EXPECT_GT(measured_bandwidth(2, 0.001), 0);
  EXPECT_GT(total_memory(), 0u);
  EXPECT_GT(resident_peak(), 0u);
  EXPECT_GT(available_memory(), 0u);
  EXPECT_LE(available_memory(), total_memory());
  EXPECT_FALSE(cpu_name().empty());
}

TEST(Machine, RespectsTheAddressSpaceLimit) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::ifstream file("/proc/self/statm");
    uint64_t pages = 0;
    file >> pages;
    constexpr uint64_t kFree = 64 << 20;
    const rlim_t limit = pages * static_cast<uint64_t>(getpagesize()) + kFree;
    const rlimit space{limit, limit};
    if (setrlimit(RLIMIT_AS, &space) != 0) _exit(2);
    const uint64_t available = available_memory();
    _exit(available > 0 && available <= kFree ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fovea::train
