#include "rewards/rewards.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/fields.h"
#include "base/hash.h"

namespace fovea::train {
namespace {

constexpr double kMostWeight = 1e6;  // sums of larger ones are lost in rounding, or infinite

// A reward as the options write it: "0.5*regex:[0-9]+".
struct ParsedReward {
  double weight = 1;
  std::string kind, argument;
};

ParsedReward parse_reward(const std::string& given) {
  ParsedReward reward;
  std::string_view rest = given;
  const size_t star = rest.find('*');
  double weight = 0;
  const char* const end = rest.data() + (star == rest.npos ? 0 : star);
  const auto [read, error] = std::from_chars(rest.data(), end, weight);
  if (star != rest.npos && error == std::errc() && read == end) {
    reward.weight = weight;
    rest.remove_prefix(star + 1);
  }
  const size_t colon = rest.find(':');
  reward.kind = rest.substr(0, colon);
  if (colon != rest.npos) reward.argument = rest.substr(colon + 1);
  return reward;
}

}  // namespace

Rewards::Rewards(const ReinforcementOptions& options, DType compute) {
  const auto add = [&](std::string name, double weight, std::unique_ptr<Reward> reward) {
    const auto taken = std::count_if(names_.begin(), names_.end(), [&](const std::string& other) {
      return other == name || other.starts_with(name + "_");
    });
    names_.push_back(taken == 0 ? name : fmt::format("{}_{}", name, taken + 1));
    weights_.push_back(weight);
    all_.push_back(std::move(reward));
  };
  for (const std::string& given : options.rewards) {
    const auto [weight, kind, argument] = parse_reward(given);
    check_field(std::abs(weight) <= kMostWeight, "rewards",
                "{} has the weight {}; expected a number from -{:g} to {:g}", given, weight,
                kMostWeight, kMostWeight);
    std::unique_ptr<Reward> reward =
        kind == "model" ? make_reward_model(argument, compute) : make_check(kind, argument);
    check_field(reward != nullptr, "rewards",
                "{} is unknown; expected exact, numeric, string_check:OPERATION:TEXT, "
                "regex:PATTERN, schema:FILE, length:LEAST-MOST or model:DIR, each optionally after "
                "WEIGHT*",
                given);
    add(kind, weight, std::move(reward));
  }
  if (options.reward) add("function", 1, make_reward_function(options.reward));
  if (!options.reward_command.empty())
    add("command", 1,
        make_reward_program(options.reward_command, options.reward_timeout, options.stop));
}

Rewards::Scores Rewards::operator()(const std::vector<GeneratedAnswer>& answers) const {
  Scores scores;
  scores.total.resize(answers.size());
  for (size_t i = 0; i < all_.size(); ++i) {
    scores.by_name.push_back((*all_[i])(answers));
    for (size_t n = 0; n < answers.size(); ++n)
      scores.total[n] += weights_[i] * scores.by_name.back()[n];
  }
  return scores;
}

void Rewards::require(const Prompt& prompt) const {
  for (const auto& reward : all_) reward->require(prompt);
}

uint64_t Rewards::hash() const {
  Hasher hasher;
  for (const auto& reward : all_) hasher.add(hash_text(reward->hash()));
  return hasher.hash();
}

uint64_t Rewards::bytes() const {
  uint64_t bytes = 0;
  for (const auto& reward : all_) bytes += reward->bytes();
  return bytes;
}

}  // namespace fovea::train
