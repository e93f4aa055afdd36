// Compares ten training steps of a GPT-2 with PyTorch: gradients, clipping, AdamW and its parameter
// groups.

#include <gtest/gtest.h>

#include <cmath>

#include "open/directory.h"
#include "optim/optimizer.h"
#include "safetensors/safetensors.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The batch of one step: ids [B, T], and the token that follows each of them.
struct StepTokens {
  Tensor ids, targets;
};

StepTokens batch_of(const Tensor& all, int64_t step) {
  const int64_t B = all.dim(1), T = all.dim(2);
  StepTokens batch{empty({B, T}, DType::i32), empty({B, T}, DType::i32)};
  const int64_t* from = all.data_as<int64_t>() + step * B * T;
  for (int64_t i = 0; i < B * T; ++i) {
    batch.ids.data_as<int32_t>()[i] = static_cast<int32_t>(from[i]);
    batch.targets.data_as<int32_t>()[i] = i % T == T - 1 ? -100 : static_cast<int32_t>(from[i + 1]);
  }
  return batch;
}

void expect_weights(const model::ModelFiles& files, model::Transformer& model,
                    const SafeTensors& expected, int64_t step) {
  for (const auto& [name, found] : model::checkpoint_tensors(model, *files.origin.family)) {
    const Tensor want = expected.tensor("step" + std::to_string(step) + "." + name);
    ASSERT_EQ(found.shape(), want.shape()) << name;
    double worst = 0, scale = 0;
    for (int64_t i = 0; i < want.size(); ++i) {
      const double value = want.data_as<float>()[i];
      const double difference = std::abs(value - double{found.data_as<float>()[i]});
      ASSERT_TRUE(std::isfinite(difference)) << name;
      worst = std::max(worst, difference);
      scale = std::max(scale, std::abs(value));
    }
    EXPECT_LE(worst, 1e-4 * scale) << name << " after step " << step;
  }
}

TEST(AdamW, MatchesPyTorch) {
  const SafeTensors expected("tests/goldens/adamw.safetensors");
  const Tensor ids = expected.tensor("ids"), losses = expected.tensor("losses"),
               norms = expected.tensor("norms");
  model::ModelFiles files =
      model::open_model_files("tests/goldens/gpt2_relu", model::Weights::owned);
  model::Transformer& model = files.model;
  train::OptimizerOptions options;
  options.beta1 = 0.9;
  options.beta2 = 0.99;
  options.epsilon = 1e-4;
  options.weight_decay = 0.1;
  options.clip = 1;
  train::Optimizer optimizer(model::parameters_of(model), options);
  for (int64_t step = 0; step < 10; ++step) {
    const StepTokens batch = batch_of(ids, step);
    model::Pass pass;
    pass.mask.causal = true;
    const Tensor loss = cross_entropy(model.logits(model.hidden(batch.ids, pass)), batch.targets);
    backward(loss);
    const double norm = optimizer.gradient_norm();
    EXPECT_NEAR(to_floats(loss)[0], losses.data_as<float>()[step], 1e-5) << "step " << step;
    EXPECT_NEAR(norm, norms.data_as<float>()[step], 1e-4 * norm) << "step " << step;
    EXPECT_GT(norm, options.clip) << "step " << step << ": nothing is clipped";
    optimizer.update(step + 1, 1e-2, norm);
    if (step == 0 || step == 9) expect_weights(files, model, expected, step + 1);
  }
}

}  // namespace
}  // namespace fovea
