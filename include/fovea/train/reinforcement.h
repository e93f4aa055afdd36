#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fovea/core/options.h"

namespace fovea::train {

// The advantage of an answer, from its reward and those of the other answers to its prompt.
// grpo: (r - mean) / (deviation + 1e-4) (Shao et al. 2024, 4.1.2). dr_grpo: r - mean (Liu et al.
// 2025). rloo: r - mean of the others (Ahmadian et al. 2024, eq. 6).
enum class AdvantageKind { grpo, dr_grpo, rloo };

// How the losses of tokens are averaged in objective grpo. grpo: over the tokens of each answer,
// then over answers (Shao et al. 2024, eq. 3). dapo: over all tokens (Yu et al. 2025, eq. 12).
// dr_grpo: the sum divided by generations x answer_tokens (Liu et al. 2025).
enum class PolicyAverage { grpo, dapo, dr_grpo };

// An answer for a reward of one's own: the record of its prompt, as JSON, and the generated text.
struct RewardedAnswer {
  std::string record, text;
  int64_t tokens = 0;  // without the end token
};

// A prompt, the model's answers so far and what an environment replied to them.
struct Episode {
  // The index of the episode: of all that the run plays in training, or of one evaluation's.
  int64_t number = 0;
  bool evaluation = false;
  int64_t turn = 0;      // number of answers before the last one
  std::string record;    // of the prompt, as JSON
  std::string messages;  // a JSON list, whose last message is the answer: {"role", "content"}
};

// What an environment does after an answer.
struct EnvironmentReply {
  double reward = 0;  // is added to those of the episode's other answers
  bool done = true;   // whether the episode ends
  // A JSON list of the messages that follow the answer, such as results of tools; empty if done.
  std::string messages = {};
  // The answer as the chat template reads it, such as a JSON object with "tool_calls"; empty = the
  // message in Episode.
  std::string answer = {};
};

// Reinforcement learning of a language model from rewards of its own answers: group-relative policy
// optimisation (GRPO; Shao et al. 2024) or proximal policy optimisation (PPO; Schulman et al.
// 2017). The model generates `generations` answers to each of `prompts` prompts, rewards judge
// them, and batch_epochs * minibatches optimiser steps follow; then it generates the next answers.
struct ReinforcementOptions {
  // Files of held-out prompts; empty = hold out evenly spaced prompts of the data.
  std::vector<std::string> validation_prompts;
  int64_t evaluation_prompts = 256;  // held-out prompts per evaluation; 0 = all
  int64_t prompts = 8;               // prompts per batch of answers
  int64_t generations = 8;           // answers to each prompt
  int64_t answer_tokens = 256;       // maximum tokens of an answer or an episode, with end tokens
  double sampling_temperature = 1;   // divisor of the logits, in generation and in training
  int64_t batch_epochs = 0;          // passes over each batch of answers; 0 = 1 for grpo, 4 for ppo
  int64_t minibatches = 1;           // optimiser steps per pass; each reads a part of the answers
  // Answers that reach `answer_tokens` without an end do not contribute to the loss of the policy
  // (Yu et al. 2025, 3.4).
  bool mask_truncated = false;

  // Each is "KIND:ARGUMENT", or "WEIGHT*KIND:ARGUMENT"; an answer's reward is the weighted sum.
  //   exact or exact:KEY      1 if the answer is the record's value of KEY (default: "answer"),
  //                           without white space around them
  //   numeric or numeric:KEY  1 if the last number of the answer is the last one of that value
  //   string_check:eq:TEXT    1 if the answer is the text, in which {{item.KEY}} is the record's
  //                           value of KEY; ne: is not; like: contains it; ilike: in any case
  //   regex:PATTERN           1 if the pattern occurs in the answer
  //   schema:FILE             1 if the answer is JSON for the JSON Schema in FILE
  //   length:LEAST-MOST       1 if the answer has this number of tokens, without the end token
  //   model:DIR               the output of a sequence classifier with one label
  std::vector<std::string> rewards;
  // A program, run by the shell for each batch of answers: it reads a JSON object per answer (the
  // record and "completion") and writes one line per answer: a number, or an object with "reward".
  // Its rewards are added with the weight 1; empty = none.
  std::string reward_command;
  double reward_timeout = 60;  // seconds that the program may take for one batch
  // A reward of one's own: returns a finite number for each answer, which is added with the weight
  // 1. It is called once for each batch of answers, on the thread of the run; empty = none.
  std::function<std::vector<double>(const std::vector<RewardedAnswer>&)> reward = nullptr;
  // An environment, with which the model talks for several turns: returns a reply to the last
  // answer of each episode. It is called on the thread of the run until all episodes of a batch are
  // done. An episode also ends with an answer that has no end token, or where it has
  // `answer_tokens` tokens after the prompt, replies included. Only answers are trained, all with
  // the reward of their episode, to which the rewards above add that of its last answer. For
  // decoders; empty = none.
  std::function<std::vector<EnvironmentReply>(const std::vector<Episode>&)> environment = nullptr;
  // Whether the run shall end now. Called while the program runs, which is then ended; the run ends
  // like one whose progress callback returns false.
  std::function<bool()> stop = nullptr;

  AdvantageKind advantage = AdvantageKind::grpo;       // grpo
  PolicyAverage policy_average = PolicyAverage::grpo;  // grpo
  double clip_ratio = 0.2;     // the ratio of probabilities is clipped to 1 -+ this
  double clip_ratio_high = 0;  // upper limit 1 + this (Yu et al. 2025, eq. 10); 0 = clip_ratio
  // Weight of the divergence from the initial model: in grpo of the loss k3 = exp(d) - d - 1 with
  // d = log reference - log policy (Schulman 2020), in ppo of -d in the rewards. -1 = 0 for grpo,
  // 0.05 for ppo.
  double kl_weight = -1;

  double kl_target = 0;       // ppo: divergence that kl_weight is adapted to; 0 = fixed kl_weight
  double kl_horizon = 10000;  // ppo: answers over which kl_weight adapts (Ziegler et al. 2019, 2.2)
  double gamma = 1, lambda = 0.95;  // ppo: GAE (Schulman et al. 2016, eq. 16)
  double clip_value = 0.2;          // ppo: values are clipped to the old ones -+ this
  double value_weight = 0.1;        // ppo: weight of the loss of values
  bool whiten = true;               // ppo: advantages of a batch have mean 0 and deviation 1
  double score_clip = 0;            // ppo: rewards of answers are clipped to -+ this; 0 = off
  double reward_clip = 0;  // ppo: rewards of tokens, with the divergence, to -+ this; 0 = off
};

// Ends the program that computes rewards, if one runs. May be called by a signal handler.
void end_reward_program() noexcept;

void visit(ReinforcementOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

}  // namespace fovea::train
