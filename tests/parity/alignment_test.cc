// Compares 20 steps of DPO, GRPO and PPO with PyTorch: losses and updates of all weights.
// tools/goldens/make_alignment.py wrote the goldens.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formats/peft/adapters.h"
#include "fovea/train/train.h"
#include "loop/policy.h"
#include "losses/advantages.h"
#include "open/directory.h"
#include "optim/optimizer.h"
#include "support/run_logs.h"
#include "support/temporary_folder.h"
#include "support/updates.h"

namespace fovea {
namespace {

const std::string kAlignment = "tests/goldens/alignment/";
const std::string kAligned = "tests/goldens/fine_tuning/model";
constexpr double kAlignedUpdate = 1e-3;  // of the norm of the update
constexpr int64_t kAlignedSteps = 20;

class Alignment : public testing::Test {
 protected:
  std::vector<double> losses(const std::string& run) const {
    const std::vector<float> all = to_floats(expected_.tensor(run + ".losses"));
    return {all.begin(), all.end()};
  }

  // The texts as answers that were written: chosen and rejected ones in turn.
  train::RolloutBatch answers() const {
    const Tensor ids = expected_.tensor("ids"), mask = expected_.tensor("mask"),
                 lengths = expected_.tensor("lengths");
    const auto at = [](const Tensor& x, int64_t i) { return x.data_as<int64_t>()[i]; };
    train::RolloutBatch batch;
    for (int64_t text = 0, begin = 0; text < lengths.size(); begin += at(lengths, text++)) {
      int64_t first = begin, end = begin + at(lengths, text);
      while (at(mask, first) == 0) ++first;
      while (at(mask, end - 1) == 0) --end;
      std::vector<int32_t>& own = batch.ids.emplace_back();
      for (int64_t i = begin; i < end; ++i) own.push_back(static_cast<int32_t>(at(ids, i)));
      batch.prompts.push_back(static_cast<int32_t>(first - begin));
      batch.trained.push_back(1);
    }
    return batch;
  }

  // Takes the steps of the goldens, and compares losses and updates.
  void expect_steps(const std::string& run, const train::RolloutBatch& batch,
                    const train::PolicyTraining& training) const {
    model::ModelFiles files = model::open_model_files(kAligned, model::Weights::owned);
    model::Linear head(files.model.spec.width, 1, true);
    head.weight.value = zeros({1, files.model.spec.width});
    head.bias.value = zeros({1});
    std::vector<model::NamedParameter> parameters = model::parameters_of(files.model);
    if (training.ppo) {
      parameters.push_back({"value_head.weight", &head.weight});
      parameters.push_back({"value_head.bias", &head.bias});
    }
    const auto tensors = [&] {
      auto all = model::checkpoint_tensors(files.model, *files.origin.family);
      if (!training.ppo) return all;
      all["value_head.weight"] = head.weight.value;
      all["value_head.bias"] = head.bias.value;
      return all;
    };
    const auto start = copied(tensors());
    train::Optimizer optimizer(parameters, {.beta2 = 0.999, .weight_decay = 0.1, .clip = 1});
    const std::vector<double> expected = losses(run);
    for (int64_t step = 0; step < kAlignedSteps; ++step) {
      const double loss = train::backward_on_batch(files.model, training.ppo ? &head : nullptr,
                                                   batch, 0, step, training)
                              .loss;
      EXPECT_NEAR(loss, expected[static_cast<size_t>(step)], 1e-4) << run << ", step " << step;
      optimizer.update(step + 1, 1e-3, optimizer.gradient_norm());
    }
    EXPECT_LE(update_difference(start, tensors(), expected_, run), kAlignedUpdate);
  }

  static std::vector<float> floats(const std::vector<double>& values) {
    return {values.begin(), values.end()};
  }

  const SafeTensors expected_{kAlignment + "expected.safetensors"};
  const TemporaryFolder folder_;
};

// The whole way from the records: the template, the reference, the loss and the optimiser.
TEST_F(Alignment, ByDpoTakesTheStepsOfPyTorch) {
  train::TrainOptions o;
  o.data = {kAlignment + "pairs.jsonl"};
  o.from = kAligned;
  o.objective = train::Objective::dpo;
  o.out = folder_ / "out";
  o.steps = kAlignedSteps;
  o.batch = 6;
  o.learning_rate = 1e-3;
  o.schedule = train::Schedule::constant;
  o.warmup = 0;
  o.beta2 = 0.999;
  o.validation = 0;
  o.sample_tokens = 0;
  o.precision = train::Precision::fp32;
  train::train({}, o);
  const std::map<int64_t, double> found = logged(o, "loss");
  const std::vector<double> expected = losses("dpo");
  for (int64_t step = 0; step < kAlignedSteps; ++step)
    EXPECT_NEAR(found.at(step + 1), expected[static_cast<size_t>(step)], 1e-4) << step;
  const auto tensors_of = [](const std::string& folder) {
    model::ModelFiles files = model::open_model_files(folder, model::Weights::owned);
    return model::checkpoint_tensors(files.model, *files.origin.family);
  };
  EXPECT_LE(update_difference(tensors_of(o.from), tensors_of(o.out), expected_, "dpo"),
            kAlignedUpdate);
}

TEST_F(Alignment, ByGrpoTakesTheStepsOfPyTorch) {
  train::RolloutBatch batch = answers();
  train::PolicyTraining training;
  training.batch = 4;  // several passes, of different lengths
  training.options.batch_epochs = kAlignedSteps;
  training.options.kl_weight = 0.04;
  const model::ModelFiles files = model::open_model_files(kAligned, model::Weights::mapped);
  batch.old = batch.reference = train::read_tokens(files.model, nullptr, batch, training).log_p;
  std::vector<double> rewards;
  for (size_t i = 0; i < batch.count(); ++i) rewards.push_back(i % 2 == 0 ? 1 : 0);
  const std::vector<double> advantages =
      train::group_advantages(rewards, 2, train::AdvantageKind::grpo);
  for (size_t i = 0; i < batch.count(); ++i)
    batch.advantages.insert(batch.advantages.end(), static_cast<size_t>(batch.length(i)),
                            static_cast<float>(advantages[i]));
  expect_steps("grpo", batch, training);
}

TEST_F(Alignment, ByPpoTakesTheStepsOfPyTorch) {
  train::RolloutBatch batch = answers();
  train::PolicyTraining training;
  training.ppo = true;
  training.batch = 5;
  training.options.batch_epochs = kAlignedSteps;
  const model::ModelFiles files = model::open_model_files(kAligned, model::Weights::mapped);
  batch.old = train::read_tokens(files.model, nullptr, batch, training).log_p;
  batch.values.assign(batch.old.size(), 0);  // the head is 0
  std::vector<double> all;
  for (size_t i = 0; i < batch.count(); ++i) {
    const auto T = static_cast<size_t>(batch.length(i));
    std::vector<double> rewards(T, 0), values(T, 0);
    rewards.back() = i % 2 == 0 ? 1 : 0;
    const std::vector<double> found = train::generalised_advantages(
        rewards, values, training.options.gamma, training.options.lambda);
    all.insert(all.end(), found.begin(), found.end());
  }
  batch.returns = floats(all);
  train::whiten(all);
  batch.advantages = floats(all);
  expect_steps("ppo", batch, training);
}

}  // namespace
}  // namespace fovea
