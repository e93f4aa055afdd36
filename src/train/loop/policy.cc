#include "loop/policy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/math.h"
#include "data/permutation.h"
#include "kernels/sum_tree.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

model::Pass policy_pass(const PolicyTraining& training) {
  model::Pass pass;
  pass.compute = training.compute;
  pass.recompute = training.recompute;
  return pass;
}

// Returns the answers of one step: a part of a random order, another one in each epoch.
std::vector<size_t> answers_of_update(const RolloutBatch& batch, int64_t n, int64_t update,
                                      const PolicyTraining& training) {
  const int64_t parts = training.options.minibatches, part = update % parts;
  const auto count = static_cast<int64_t>(batch.count());
  const auto key = static_cast<uint64_t>(n * training.epochs() + update / parts);
  const Permutation order(batch.count(), training.seed ^ (key << 20));
  std::vector<size_t> answers;
  for (int64_t i = part * count / parts; i < (part + 1) * count / parts; ++i)
    answers.push_back(order(static_cast<uint64_t>(i)));
  return answers;
}

// The weights of the tokens of each answer in the losses. An answer that is left out counts among
// the answers of a mean over answers, as in TRL, but not its tokens in a mean over tokens.
struct TokenWeights {
  std::vector<float> policy, value;  // by token of all answers
};

TokenWeights token_weights(const RolloutBatch& batch, const std::vector<size_t>& answers,
                           const PolicyTraining& training) {
  double tokens = 0, trained_tokens = 0;
  for (const size_t i : answers) {
    const auto length = static_cast<double>(batch.length(i));
    tokens += length;
    trained_tokens += batch.trained[i] * length;
  }
  const PolicyAverage average =
      training.ppo ? PolicyAverage::dapo : training.options.policy_average;
  const std::vector<int64_t> starts = batch.starts();
  TokenWeights weights;
  weights.policy.assign(static_cast<size_t>(starts.back()), 0);
  weights.value.assign(static_cast<size_t>(starts.back()), static_cast<float>(1 / tokens));
  for (const size_t i : answers) {
    if (batch.trained[i] == 0) continue;
    const auto length = static_cast<double>(batch.length(i));
    const auto count = static_cast<double>(answers.size());
    double weight = 1 / trained_tokens;
    if (average == PolicyAverage::grpo) weight = 1 / (length * count);
    if (average == PolicyAverage::dr_grpo)
      weight = 1 / (count * static_cast<double>(training.options.answer_tokens));
    std::fill(weights.policy.begin() + starts[i], weights.policy.begin() + starts[i + 1],
              static_cast<float>(weight));
  }
  return weights;
}

// Sums that the log of a step shows.
struct UpdateSums {
  double tokens = 0, clipped = 0, divergence = 0, value_loss = 0, surprisal = 0, kl = 0;
  bool compared = false;  // with a reference

  void add(const Tensor& log_p, const PolicyTargets& targets, const PolicyClip& limits) {
    const std::vector<float> now = to_floats(log_p), old = to_floats(targets.old),
                             advantages = to_floats(targets.advantages);
    for (size_t t = 0; t < now.size(); ++t) {
      const double d = static_cast<double>(now[t]) - old[t], ratio = math::exp(d);
      const bool high = ratio > 1 + limits.high && advantages[t] > 0,
                 low = ratio < 1 - limits.low && advantages[t] < 0;
      clipped += high || low;
      divergence += ratio - 1 - d;
      surprisal -= now[t];
    }
    if (targets.reference) {
      compared = true;
      const std::vector<float> reference = to_floats(targets.reference);
      for (size_t t = 0; t < now.size(); ++t) {
        const double d = static_cast<double>(reference[t]) - now[t];
        kl += math::exp(d) - d - 1;
      }
    }
    tokens += static_cast<double>(now.size());
  }
  infer::MetricValues metrics(bool ppo) const {
    // The mean of -log p over tokens drawn from p estimates the entropy.
    infer::MetricValues found = {{"entropy", surprisal / tokens},
                                 {"clip_fraction", clipped / tokens},
                                 {"update_kl", divergence / tokens}};
    if (compared) found.emplace_back("kl", kl / tokens);
    if (ppo) found.emplace_back("value_loss", value_loss);
    return found;
  }
};

PolicyClip clip_of(const PolicyTraining& training) {
  const ReinforcementOptions& o = training.options;
  return {.low = o.clip_ratio,
          .high = o.clip_ratio_high > 0 ? o.clip_ratio_high : o.clip_ratio,
          .kl_weight = training.ppo ? 0 : training.kl_weight()};
}

// Returns log softmax(logits / temperature)[label] of each label, without storing large logits.
Tensor log_probabilities(const model::Transformer& model, const HeadInputs& inputs,
                         double temperature) {
  if (temperature == 1) return model.log_probabilities(inputs.hidden, inputs.labels);
  const auto factor = static_cast<float>(1 / temperature);
  if (recording())
    return log_probability(scale(model.logits(inputs.hidden, inputs.valid), factor), inputs.labels);
  const Tensor log_p = empty({inputs.labels.size()}, DType::f32);
  each_block_of_logits(model, inputs, [&](const Tensor& block, int64_t begin, int64_t end) {
    const Tensor found = log_probability(scale(block, factor), inputs.labels.rows(begin, end));
    copy_bytes(log_p, begin * 4, found, 0, (end - begin) * 4);
  });
  return log_p;
}

}  // namespace

PolicyOutputs policy_outputs(const model::Transformer& model, const model::Linear* value_head,
                             const Batch& batch, const PolicyTraining& training) {
  const HeadInputs inputs = head_inputs(model, batch, policy_pass(training));
  PolicyOutputs outputs{log_probabilities(model, inputs, training.options.sampling_temperature),
                        {}};
  if (value_head != nullptr) {
    const Tensor values = linear(inputs.hidden, value_head->weight.value, value_head->bias.value,
                                 outputs.log_p.dtype());
    outputs.values = values.view({values.size()});
  }
  return outputs;
}

PolicyLosses policy_losses(const PolicyOutputs& outputs, const PolicyTargets& targets,
                           const std::optional<ValueTargets>& values,
                           const PolicyTraining& training) {
  PolicyLosses losses;
  losses.policy = losses.total = policy_loss(outputs.log_p, targets, clip_of(training));
  if (!values) return losses;
  losses.value = value_loss(outputs.values, *values, training.options.clip_value);
  losses.total =
      add(losses.policy, scale(losses.value, static_cast<float>(training.options.value_weight)));
  return losses;
}

TokenNumbers read_tokens(const model::Transformer& model, const model::Linear* value_head,
                         const RolloutBatch& batch, const PolicyTraining& training) {
  const NoGradient off;
  const std::vector<int64_t> starts = batch.starts();
  TokenNumbers found;
  found.log_p.resize(static_cast<size_t>(starts.back()));
  if (value_head != nullptr) found.values.resize(found.log_p.size());
  std::vector<size_t> all(batch.count());
  std::iota(all.begin(), all.end(), 0);
  for (const std::vector<size_t>& answers : passes_of(batch, all, training.batch)) {
    const Batch inputs = batch.batch_of(answers, training.padding);
    const PolicyOutputs outputs = policy_outputs(model, value_head, inputs, training);
    const auto put = [&](const Tensor& numbers, std::vector<float>& into) {
      const HostValues<float> of_tokens(numbers);
      auto next = of_tokens.begin();
      for (const size_t i : answers) {
        std::copy_n(next, batch.length(i), into.begin() + starts[i]);
        next += batch.length(i);
      }
    };
    put(outputs.log_p, found.log_p);
    if (value_head != nullptr) put(outputs.values, found.values);
  }
  return found;
}

TrainingTask::StepLoss backward_on_batch(const model::Transformer& model,
                                         const model::Linear* value_head, const RolloutBatch& batch,
                                         int64_t n, int64_t update,
                                         const PolicyTraining& training) {
  const std::vector<size_t> chosen = answers_of_update(batch, n, update, training);
  const TokenWeights weights = token_weights(batch, chosen, training);
  TrainingTask::StepLoss result;
  UpdateSums sums;
  std::vector<double> losses;
  const std::vector<std::vector<size_t>> passes = passes_of(batch, chosen, training.batch);
  for (const std::vector<size_t>& answers : passes) {
    const auto pick = [&](const std::vector<float>& numbers) {
      return numbers.empty() ? Tensor() : batch.picked(answers, numbers);
    };
    const Batch inputs = batch.batch_of(answers, training.padding);
    const PolicyOutputs outputs = policy_outputs(model, value_head, inputs, training);
    const Tensor own = outputs.log_p.detach();
    const PolicyTargets targets = {.old = batch.old.empty() ? own : pick(batch.old),
                                   .advantages = pick(batch.advantages),
                                   .weights = pick(weights.policy),
                                   .reference = pick(batch.reference)};
    sums.add(own, targets, clip_of(training));
    std::optional<ValueTargets> values;
    if (value_head != nullptr)
      values = {pick(batch.values), pick(batch.returns), pick(weights.value)};
    const PolicyLosses all = policy_losses(outputs, targets, values, training);
    if (values) sums.value_loss += number_of(all.value);
    const Tensor& loss = all.total;
    result.tokens += inputs.tokens;
    losses.push_back(number_of(loss));
    backward(loss);
  }
  result.loss = tree_sum(losses);
  result.metrics = sums.metrics(training.ppo);
  return result;
}

}  // namespace fovea::train
