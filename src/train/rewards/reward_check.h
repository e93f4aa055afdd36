#pragma once

#include "rewards/rewards.h"

namespace fovea::train {

// A check of each answer alone: 1 if it holds, else 0.
class Check : public Reward {
 public:
  std::vector<double> operator()(const std::vector<GeneratedAnswer>& answers) override {
    std::vector<double> found;
    for (const GeneratedAnswer& answer : answers) found.push_back(holds(answer) ? 1 : 0);
    return found;
  }

 private:
  virtual bool holds(const GeneratedAnswer& answer) = 0;
};

// Compares answers with a text, in which {{item.KEY}} is a value of the record: "OPERATION:TEXT".
// eq, ne: the answer is the text, or is not. like, ilike: it contains the text, ilike in any case.
std::unique_ptr<Reward> make_string_check(const std::string& argument);

}  // namespace fovea::train
