#include "losses/advantages.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "metrics/correlation.h"

namespace fovea::train {
namespace {

// Returns the unbiased variance.
double variance_of(std::span<const double> values, double mean) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

}  // namespace

std::vector<double> generalised_advantages(std::span<const double> rewards,
                                           std::span<const double> values, double gamma,
                                           double lambda) {
  check(rewards.size() == values.size(), "advantages: {} rewards and {} values; expected as many",
        rewards.size(), values.size());
  std::vector<double> advantages(rewards.size());
  double next_value = 0, next = 0;
  for (size_t t = rewards.size(); t-- > 0;) {
    const double delta = rewards[t] + gamma * next_value - values[t];
    advantages[t] = next = delta + gamma * lambda * next;
    next_value = values[t];
  }
  return advantages;
}

void whiten(std::vector<double>& values) {
  if (values.size() < 2) return;
  const double mean = infer::mean_of(values),
               scale = 1 / std::sqrt(variance_of(values, mean) + 1e-8);
  for (double& value : values) value = (value - mean) * scale;
}

std::vector<double> group_advantages(std::span<const double> rewards, int64_t group,
                                     AdvantageKind kind) {
  check(group > 0 && std::ssize(rewards) % group == 0,
        "advantages: {} rewards in groups of {}; expected a multiple", rewards.size(), group);
  std::vector<double> advantages;
  const auto G = static_cast<double>(group);
  for (size_t first = 0; first < rewards.size(); first += static_cast<size_t>(group)) {
    const auto of_prompt = rewards.subspan(first, static_cast<size_t>(group));
    const double mean = infer::mean_of(of_prompt);
    const double deviation = group > 1 ? std::sqrt(variance_of(of_prompt, mean)) : 0;
    for (const double reward : of_prompt) {
      double advantage = reward - mean;
      if (kind == AdvantageKind::grpo) advantage /= deviation + 1e-4;
      if (kind == AdvantageKind::rloo)  // r - (G mean - r) / (G - 1)
        advantage = group > 1 ? G / (G - 1) * advantage : reward;
      advantages.push_back(advantage);
    }
  }
  return advantages;
}

double adapted_kl_weight(double weight, double divergence, double target, int64_t answers,
                         double horizon) {
  const double error = std::clamp(divergence / target - 1, -0.2, 0.2);
  return weight * (1 + error * static_cast<double>(answers) / horizon);
}

}  // namespace fovea::train
