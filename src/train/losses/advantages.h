#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/train/reinforcement.h"

namespace fovea::train {

// Generalised advantage estimation (Schulman et al. 2016, eq. 16) of the tokens of one answer,
//   A[t] = d[t] + gamma lambda A[t + 1],   d[t] = r[t] + gamma V[t + 1] - V[t],
// where V and A after the last token are 0.   rewards, values [T] -> [T]
std::vector<double> generalised_advantages(std::span<const double> rewards,
                                           std::span<const double> values, double gamma,
                                           double lambda);

// Shifts and scales numbers to mean 0 and deviation 1: (x - mean) / sqrt(variance + 1e-8), with the
// unbiased variance. Does nothing for fewer than two numbers.
void whiten(std::vector<double>& values);

// Returns the advantages of answers, of which each `group` consecutive ones answer one prompt. A
// group of one has the advantage 0 (rloo: its reward).
std::vector<double> group_advantages(std::span<const double> rewards, int64_t group,
                                     AdvantageKind kind);

// The adaptive weight of the divergence (Ziegler et al. 2019, 2.2):
//   weight (1 + clip(divergence / target - 1, -0.2, 0.2) answers / horizon)
double adapted_kl_weight(double weight, double divergence, double target, int64_t answers,
                         double horizon);

}  // namespace fovea::train
