#include "loop/fields.h"

namespace fovea::train {

namespace {

void visit_answers_and_rewards(ReinforcementOptions& o, bool used, bool student_writes,
                               OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000;
  v.texts({"validation_prompts", "ppo, grpo: validation prompts, in the format of the data"},
          o.validation_prompts);
  v.integer({"evaluation_prompts", "ppo, grpo: held-out prompts per evaluation; 0 = all", used},
            o.evaluation_prompts, 0, kMost);
  v.integer({"prompts", "ppo, grpo: prompts per batch of answers", used}, o.prompts, 1, kMost);
  v.integer({"generations", "ppo, grpo: answers to each prompt", used}, o.generations, 1, 4096);
  v.integer({"answer_tokens", "ppo, grpo, on_policy: maximum tokens of an answer",
             used || student_writes},
            o.answer_tokens, 1, kMost);
  v.number({"sampling_temperature",
            "ppo, grpo: divisor of the logits, in generation and in training", used},
           o.sampling_temperature, 0.01, 100);
  v.integer({"batch_epochs",
             "ppo, grpo: passes over each batch of answers; 0 = 1 for grpo, 4 for ppo", used},
            o.batch_epochs, 0, 1000);
  v.integer({"minibatches", "ppo, grpo: optimiser steps per pass over a batch of answers", used},
            o.minibatches, 1, kMost);
  v.boolean({"mask_truncated",
             "ppo, grpo: answers that reach the maximum length do not train the policy", used},
            o.mask_truncated);
  v.texts({"rewards",
           "ppo, grpo: exact[:KEY], numeric[:KEY], string_check:OPERATION:TEXT, regex:PATTERN, "
           "schema:FILE, length:LEAST-MOST, model:DIR, each optionally after WEIGHT*",
           used},
          o.rewards);
  v.text(
      {"reward_command",
       "ppo, grpo: a program that reads answers as JSON lines and writes a reward for each", used},
      o.reward_command);
  v.number({"reward_timeout", "ppo, grpo: seconds of that program for one batch of answers"},
           o.reward_timeout, 0.01, 1e6);
}

}  // namespace

void visit_reinforcement(ReinforcementOptions& o, Objective objective, bool student_writes,
                         OptionVisitor& v) {
  const bool ppo = objective == Objective::ppo, grpo = objective == Objective::grpo,
             used = ppo || grpo;
  visit_answers_and_rewards(o, used, student_writes, v);
  v.choice({"advantage", "grpo: advantage of an answer among those to its prompt", grpo},
           o.advantage, {"grpo", "dr_grpo", "rloo"});
  v.choice({"policy_average", "grpo: how the losses of tokens are averaged", grpo},
           o.policy_average, {"grpo", "dapo", "dr_grpo"});
  v.number({"clip_ratio", "ppo, grpo: limit of the change of a token's probability", used},
           o.clip_ratio, 0, 100);
  v.number(
      {"clip_ratio_high", "ppo, grpo: the same for its increase; 0 = as for its decrease", used},
      o.clip_ratio_high, 0, 100);
  v.number({"kl_weight",
            "ppo, grpo: weight of the divergence from the initial model; -1 = 0 for grpo, 0.05 "
            "for ppo",
            used},
           o.kl_weight, -1, 1000);
  v.number({"kl_target", "ppo: divergence to which its weight is adapted; 0 = a fixed weight", ppo},
           o.kl_target, 0, 1e6);
  v.number({"kl_horizon", "ppo: answers over which the weight of the divergence adapts", ppo},
           o.kl_horizon, 1, 1e12);
  v.number({"gamma", "ppo: discount of later rewards", ppo}, o.gamma, 0, 1);
  v.number({"gae_lambda", "ppo: decay of later errors of values in advantages (GAE)", ppo},
           o.lambda, 0, 1);
  v.number({"clip_value", "ppo: limit of the change of a value", ppo}, o.clip_value, 0, 1e6);
  v.number({"value_weight", "ppo: weight of the loss of values", ppo}, o.value_weight, 0, 1e6);
  v.boolean({"whiten", "ppo: shift and scale advantages to mean 0 and deviation 1", ppo}, o.whiten);
  v.number({"score_clip", "ppo: limit of the reward of an answer; 0 = off", ppo}, o.score_clip, 0,
           1e9);
  v.number({"reward_clip", "ppo: limit of the reward of a token; 0 = off", ppo}, o.reward_clip, 0,
           1e9);
}

void visit(ReinforcementOptions& options, OptionVisitor& visitor) {
  visit_reinforcement(options, Objective::ppo, false, visitor);
}

}  // namespace fovea::train
