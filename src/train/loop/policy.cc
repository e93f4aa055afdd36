#include "loop/policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

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

// What a pass adds to the loss and to the log of its step.
struct PassSums {
  static constexpr size_t kNumbers = 8;
  double loss = 0, tokens = 0;  // all tokens that it reads
  double answer_tokens = 0, clipped = 0, divergence = 0, value_loss = 0, surprisal = 0, kl = 0;

  void append_to(std::vector<double>& numbers) const {
    numbers.insert(numbers.end(),
                   {loss, tokens, answer_tokens, clipped, divergence, value_loss, surprisal, kl});
  }
  static PassSums read(const double* n) {
    PassSums sums;
    std::tie(sums.loss, sums.tokens, sums.answer_tokens, sums.clipped, sums.divergence,
             sums.value_loss, sums.surprisal, sums.kl) =
        std::tie(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]);
    return sums;
  }

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
      const std::vector<float> reference = to_floats(targets.reference);
      for (size_t t = 0; t < now.size(); ++t) {
        const double d = static_cast<double>(reference[t]) - now[t];
        kl += math::exp(d) - d - 1;
      }
    }
    answer_tokens += static_cast<double>(now.size());
  }
};
// Returns the result of a step, from its passes in their order.
TrainingTask::StepLoss result_of(std::span<const PassSums> passes, bool ppo, bool compared) {
  PassSums all;
  std::vector<double> losses;
  for (const PassSums& one : passes) {
    losses.push_back(one.loss);
    all.tokens += one.tokens;
    all.answer_tokens += one.answer_tokens;
    all.clipped += one.clipped;
    all.divergence += one.divergence;
    all.value_loss += one.value_loss;
    all.surprisal += one.surprisal;
    all.kl += one.kl;
  }
  TrainingTask::StepLoss result;
  result.loss = tree_sum(losses);
  result.tokens = static_cast<int64_t>(all.tokens);
  // The mean of -log p over tokens drawn from p estimates the entropy.
  result.metrics = {{"entropy", all.surprisal / all.answer_tokens},
                    {"clip_fraction", all.clipped / all.answer_tokens},
                    {"update_kl", all.divergence / all.answer_tokens}};
  if (compared) result.metrics.emplace_back("kl", all.kl / all.answer_tokens);
  if (ppo) result.metrics.emplace_back("value_loss", all.value_loss);
  return result;
}

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

// The ranks read the passes in turns.
TokenNumbers read_tokens(const model::Transformer& model, const model::Linear* value_head,
                         const RolloutBatch& batch, const PolicyTraining& training) {
  const NoGradient off;
  std::vector<size_t> all(batch.count());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::vector<size_t>> passes = passes_of(batch, all, training.batch);
  const auto ranks = static_cast<size_t>(training.ranks == nullptr ? 1 : training.ranks->size()),
             me = static_cast<size_t>(training.ranks == nullptr ? 0 : training.ranks->rank());
  std::string own;  // the numbers of the passes of this rank
  for (size_t p = me; p < passes.size(); p += ranks) {
    const Batch inputs = batch.batch_of(passes[p], training.padding);
    const PolicyOutputs outputs = policy_outputs(model, value_head, inputs, training);
    for (const Tensor& numbers : {outputs.log_p, outputs.values}) {
      if (!numbers) continue;
      const std::vector<float> floats = to_floats(numbers);
      own.append(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
    }
  }
  const std::vector<std::string> numbers =
      training.ranks == nullptr ? std::vector{own} : training.ranks->gather(own);
  std::vector<const char*> next;
  for (const std::string& of_rank : numbers) next.push_back(of_rank.data());

  const std::vector<int64_t> starts = batch.starts();
  TokenNumbers found;
  found.log_p.resize(static_cast<size_t>(starts.back()));
  if (value_head != nullptr) found.values.resize(found.log_p.size());
  for (size_t p = 0; p < passes.size(); ++p) {
    const char*& from = next[p % ranks];
    for (std::vector<float>* into : {&found.log_p, &found.values}) {
      if (into->empty()) continue;
      for (const size_t i : passes[p]) {
        const auto bytes = static_cast<size_t>(batch.length(i)) * sizeof(float);
        std::memcpy(into->data() + starts[i], std::exchange(from, from + bytes), bytes);
      }
    }
  }
  return found;
}

namespace {

// The passes of a step on a batch of answers.
struct UpdatePasses {
  const model::Transformer& model;
  const model::Linear* value_head;
  const RolloutBatch& batch;
  const PolicyTraining& training;
  const TokenWeights weights;
  const std::vector<std::vector<size_t>> passes;

  // Returns the loss of a pass, and sets its sums.
  Tensor loss_of(size_t pass, PassSums& sums) const {
    const std::vector<size_t>& answers = passes[pass];
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
    if (values) sums.value_loss = number_of(all.value);
    sums.tokens = static_cast<double>(inputs.tokens);
    sums.loss = number_of(all.total);
    return all.total;
  }

  std::vector<PassSums> take_all() const {
    PassGradients gradients;
    std::vector<PassSums> all(passes.size());
    for (size_t p = 0; p < passes.size(); ++p) {
      const Tensor loss = loss_of(p, all[p]);
      if (passes.size() == 1)
        backward(loss);
      else
        gradients.backward(loss, static_cast<int64_t>(p));
    }
    gradients.finish();
    return all;
  }

  // Takes the passes of this rank. Returns the sums of all.
  std::vector<PassSums> share(StepSharing& sharing) const {
    std::vector<PassUnits> units;
    for (const std::vector<size_t>& answers : passes) {
      int64_t tokens = 0;
      for (const size_t i : answers) tokens += std::ssize(batch.ids[i]);
      units.push_back({.count = 1, .cost = static_cast<double>(tokens)});
    }
    std::vector<double> own;
    for (const StepNode& node : sharing.share(units)) {
      PassGradients gradients;
      for (const UnitRange& range : node.ranges) {
        PassSums sums;
        const Tensor loss = loss_of(range.pass, sums);
        sums.append_to(own);
        sharing.expect(node, range, gradients);
        gradients.backward(loss, range.last);
      }
      sharing.add(gradients);
    }
    const std::vector<double> found = sharing.exchange(own);
    std::vector<PassSums> all;
    for (size_t i = 0; i < found.size(); i += PassSums::kNumbers)
      all.push_back(PassSums::read(found.data() + i));
    return all;
  }
};

}  // namespace

TrainingTask::StepLoss backward_on_batch(const model::Transformer& model,
                                         const model::Linear* value_head, const RolloutBatch& batch,
                                         int64_t n, int64_t update,
                                         const PolicyTraining& training) {
  const std::vector<size_t> chosen = answers_of_update(batch, n, update, training);
  const UpdatePasses passes{model,
                            value_head,
                            batch,
                            training,
                            token_weights(batch, chosen, training),
                            passes_of(batch, chosen, training.batch)};
  return result_of(
      training.sharing == nullptr ? passes.take_all() : passes.share(*training.sharing),
      training.ppo, !batch.reference.empty());
}

}  // namespace fovea::train
