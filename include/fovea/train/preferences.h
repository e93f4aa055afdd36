#pragma once

#include <string>

namespace fovea::train {

// The loss of a pair in the objective dpo, where h is the difference of the log-ratios of the
// chosen and of the rejected answer, log p(answer) - log p_reference(answer).
// sigmoid: -log sigmoid(beta h) (Rafailov et al. 2023, eq. 7). hinge: max(0, 1 - beta h) (Zhao et
// al. 2023). ipo: (h - 1 / (2 beta))^2, with log-probabilities averaged over the tokens of an
// answer (Azar et al. 2023, eq. 17).
enum class PreferenceLoss { sigmoid, hinge, ipo };

// Training on preferences: pairs of a chosen and a rejected answer, or answers that are judged.
// The formulas are in docs/align.md.
struct PreferenceOptions {
  // dpo, kto: strength with which the model is kept near the initial one; simpo: factor of the
  // difference of the rewards. 0 = 0.1 for dpo and kto, 2 for simpo.
  double beta = 0;
  PreferenceLoss loss = PreferenceLoss::sigmoid;  // dpo
  bool reference_free = false;  // dpo: the reference has the same probability for all answers
  // dpo: weight of the mean loss of the tokens of the chosen answer, which is added to that of the
  // pair (Pang et al. 2024, "Iterative reasoning preference optimization", eq. 1).
  double chosen = 0;
  double desirable = 1;    // kto: weight of desirable answers
  double undesirable = 1;  // kto: weight of undesirable answers
  double odds = 0.1;       // orpo: lambda, weight of the odds ratio
  double gamma = 0.5;      // simpo: difference of the rewards that is aimed at
  // dpo, kto: directory of the log-probabilities of the initial model, which several runs may use
  // one after another; empty = "reference" in the output directory.
  std::string cache;
};

}  // namespace fovea::train
