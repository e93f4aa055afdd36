#include <cmath>

#include "base/fields.h"
#include "rewards/rewards.h"

namespace fovea::train {
namespace {

class RewardFunction : public Reward {
 public:
  using Function = std::function<std::vector<double>(const std::vector<RewardedAnswer>&)>;
  explicit RewardFunction(Function function) : function_(std::move(function)) {}

  std::vector<double> operator()(const std::vector<GeneratedAnswer>& answers) override {
    std::vector<RewardedAnswer> given;
    for (const GeneratedAnswer& answer : answers)
      given.push_back({answer.prompt->record, answer.text, answer.tokens});
    std::vector<double> rewards = function_(given);
    check_field(rewards.size() == answers.size(), "reward",
                "{} numbers for {} answers; expected one for each", rewards.size(), answers.size());
    for (const double reward : rewards)
      check_field(std::isfinite(reward), "reward", "{}; expected finite numbers", reward);
    return rewards;
  }

 private:
  Function function_;
};

}  // namespace

std::unique_ptr<Reward> make_reward_function(RewardFunction::Function function) {
  return std::make_unique<RewardFunction>(std::move(function));
}

}  // namespace fovea::train
