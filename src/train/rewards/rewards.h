#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "data/conversations.h"
#include "fovea/train/reinforcement.h"
#include "loop/task.h"

namespace fovea::train {

// An answer that a model has generated.
struct GeneratedAnswer {
  const Prompt* prompt = nullptr;
  std::string text;
  int64_t tokens = 0;  // without the end token
};

// Judges answers.
class Reward {
 public:
  virtual ~Reward() = default;
  virtual std::vector<double> operator()(const std::vector<GeneratedAnswer>& answers) = 0;
  // Throws BadFile, naming the record, if it lacks a key that the reward reads.
  virtual void require(const Prompt&) const {}
  // A hash of the files that the reward reads; 0 = none.
  virtual uint64_t hash() const { return 0; }
  virtual uint64_t bytes() const { return 0; }  // of weights
};

// The weighted sum of the rewards of the options.
class Rewards {
 public:
  // Throws InvalidArgument, naming the field, if a reward is unknown or its argument is wrong, and
  // the errors of the files. `compute`: dtype of the products of reward models.
  Rewards(const ReinforcementOptions& options, DType compute);

  struct Scores {
    std::vector<double> total;                 // by answer
    std::vector<std::vector<double>> by_name;  // by reward, then by answer; without weights
  };
  // Throws Failed if a program fails, and RewardsStopped.
  Scores operator()(const std::vector<GeneratedAnswer>& answers) const;
  void require(const Prompt& prompt) const;
  const std::vector<std::string>& names() const { return names_; }
  uint64_t hash() const;
  uint64_t bytes() const;

 private:
  std::vector<std::string> names_;
  std::vector<double> weights_;
  std::vector<std::unique_ptr<Reward>> all_;
};

// Built-in checks; `argument` is what follows the colon. Return 1 or 0 for each answer.
std::unique_ptr<Reward> make_check(const std::string& kind, const std::string& argument);
// The output of a model with one label for the prompt and the answer.
std::unique_ptr<Reward> make_reward_model(const std::string& folder, DType compute);
// A function of the caller; see ReinforcementOptions::reward.
std::unique_ptr<Reward> make_reward_function(
    std::function<std::vector<double>(const std::vector<RewardedAnswer>&)> function);
// A program; see ReinforcementOptions::reward_command. Its calls throw RewardsStopped if `stop`
// returns true.
std::unique_ptr<Reward> make_reward_program(const std::string& command, double seconds,
                                            std::function<bool()> stop = nullptr);

// Returns the last number of a text, such as -1,234.5; unset if it has no number.
std::optional<double> last_number(std::string_view text);

}  // namespace fovea::train
