// The gradients of the losses of GRPO and PPO, composed with a model and a value head, compared
// with finite differences in double precision.

#include <gtest/gtest.h>

#include "loop/policy.h"
#include "support/gradient_check.h"
#include "support/mixtures.h"
#include "support/small_spec.h"

namespace fovea::train {
namespace {

// Two answers to prompts, of 3 and 2 tokens.
RolloutBatch two_answers(bool translates) {
  RolloutBatch batch;
  batch.ids = translates ? std::vector<std::vector<int32_t>>{{0, 3, 5, 1}, {0, 4, 1}}
                         : std::vector<std::vector<int32_t>>{{2, 6, 3, 5, 1}, {2, 4, 1}};
  batch.prompts = translates ? std::vector<int32_t>{1, 1} : std::vector<int32_t>{2, 1};
  batch.trained = {1, 1};
  if (translates) batch.sources = {{2, 6}, {2, 3, 4}};
  return batch;
}

struct GradientModel {
  const char* name;
  model::Spec spec;
};

void check_policy_gradients(const model::Spec& given, bool ppo) {
  model::Transformer model = test::made(model::validated(given));
  model::Linear head(given.width, 1, true);
  const RolloutBatch batch = two_answers(given.encoder.has_value());
  const Batch inputs = batch.batch_of(std::vector<size_t>{0, 1}, 0);
  std::vector<Tensor> parameters;
  model.each([&](const std::string&, model::Parameter& p) {
    parameters.push_back(convert(p.value, DType::f64));
  });
  parameters.push_back(test::normal({1, given.width}, 5));
  parameters.push_back(test::normal({1}, 6));
  const auto numbers = [](uint64_t seed, double deviation, double shift) {
    const Tensor x = test::normal({5}, seed, deviation);
    for (int64_t i = 0; i < 5; ++i) x.data_as<double>()[i] += shift;
    return x;
  };
  // Old log-probabilities near and far from those of the model: some ratios are clipped.
  const PolicyTargets targets = {.old = numbers(7, 0.4, -2),
                                 .advantages = numbers(8, 1, 0),
                                 .weights = numbers(9, 0.1, 0.2),
                                 .reference = numbers(10, 0.3, -2)};
  PolicyTraining training;
  training.ppo = ppo;
  training.compute = DType::f64;
  training.options.kl_weight = 0.3;
  training.options.value_weight = 0.5;
  const std::optional<ValueTargets> values =
      ppo ? std::optional<ValueTargets>({numbers(11, 1, 0), numbers(12, 1, 0), targets.weights})
          : std::nullopt;
  test::check_gradients(
      parameters,
      [&](const std::vector<Tensor>& given_values) {
        size_t n = 0;
        model.each([&](const std::string&, model::Parameter& p) { p.value = given_values[n++]; });
        head.weight.value = given_values[n++];
        head.bias.value = given_values[n++];
        const PolicyOutputs outputs =
            policy_outputs(model, ppo ? &head : nullptr, inputs, training);
        return policy_losses(outputs, targets, values, training).total;
      },
      12);
}

TEST(PolicyGradient, IsThatOfFiniteDifferences) {
  const test::SmallSize size{.vocabulary = 7, .context = 8, .width = 8, .layers = 1, .heads = 2};
  const GradientModel models[] = {{"llama", test::small_llama(size, 5)},
                                  {"t5", test::scaled_down(model::preset("t5-small"), size, 5)}};
  for (const GradientModel& each : models) {
    for (const bool ppo : {false, true}) {
      SCOPED_TRACE(std::string(each.name) + (ppo ? ", ppo" : ", grpo"));
      model::Spec spec = each.spec;
      spec.dropout = {};
      check_policy_gradients(spec, ppo);
    }
  }
}

// TRL divides by all answers, also by those that --mask-truncated leaves out; the means of grpo and
// dr_grpo used to divide by the others only.
TEST(PolicyAverages, CountAnswersThatAreLeftOut) {
  const test::SmallSize size{.vocabulary = 7, .context = 8, .width = 8, .layers = 1, .heads = 2};
  model::Transformer model = test::made(model::validated(test::small_llama(size, 5)));
  model.each([](const std::string&, model::Parameter& p) { p.value.want_gradient(); });
  RolloutBatch batch = two_answers(false);
  batch.trained = {1, 0};
  batch.advantages.assign(5, 1.0f);
  PolicyTraining training;
  training.batch = 2;
  training.options.prompts = 1;
  training.options.generations = 2;
  training.options.answer_tokens = 10;
  training.options.kl_weight = 0;
  const auto loss = [&](PolicyAverage average) {
    training.options.policy_average = average;
    return backward_on_batch(model, nullptr, batch, 0, 0, training).loss;
  };
  // At the ratio 1, the loss is minus the sum of the weights of the 3 tokens.
  EXPECT_NEAR(loss(PolicyAverage::grpo), -1.0 / 2, 1e-6);
  EXPECT_NEAR(loss(PolicyAverage::dr_grpo), -3.0 / (2 * 10), 1e-6);
  EXPECT_NEAR(loss(PolicyAverage::dapo), -1, 1e-6);
}

}  // namespace
}  // namespace fovea::train
