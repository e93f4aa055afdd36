#pragma once

#include <gtest/gtest.h>

#include <string>

#include "data/train_tokenizer.h"
#include "support/runs.h"

namespace fovea {

// Options of a short run that trains "base" on "prompts.jsonl".
inline train::TrainOptions reinforcement_options(const Runs& runs, const std::string& out,
                                                 train::Objective objective) {
  train::TrainOptions o = runs.options(out);
  o.data = {runs / "prompts.jsonl"};
  o.from = runs / "base";
  o.objective = objective;
  o.learning_rate = 2e-3;
  o.weight_decay = 0;
  o.steps = 6;
  o.batch = 8;
  o.reinforcement.prompts = 3;
  o.reinforcement.generations = 4;
  o.reinforcement.answer_tokens = 4;
  o.reinforcement.rewards = {"exact"};
  return o;
}

// A small model that answers sums of two digits with the right format, mostly wrongly, and prompts
// that ask for sums.
class Sums : public testing::Test {
 protected:
  static constexpr int kSides = 5;  // numbers from 0

  Sums() {
    text::TokenizerTraining training;
    training.vocabulary = 257;
    train::train_tokenizer({runs_ / "text.txt"}, training)
        ->tokenizer.save(make_folder("tokenizer"));
    train::TrainOptions o = runs_.options("random");
    o.tokenizer = runs_ / "tokenizer";
    o.steps = 1;
    train::train(test::small_llama({.vocabulary = 0, .context = 64, .width = 32, .layers = 1}, 64),
                 o);
    std::string prompts, answers;
    for (int i = 0; i < kSides * kSides; ++i) {
      const int a = i / kSides, b = i % kSides;
      const std::string question = std::to_string(a) + "+" + std::to_string(b) + "=";
      prompts += R"({"prompt": ")" + question + R"(", "answer": )" + std::to_string(a + b) + "}\n";
      for (int wrong = 0; wrong < 4; ++wrong)  // the sum, or another digit
        answers += R"({"prompt": ")" + question + R"(", "completion": ")" +
                   std::to_string((a + b + 3 * wrong) % 9) + "\"}\n";
    }
    write_file_atomically(runs_ / "prompts.jsonl", prompts);
    write_file_atomically(runs_ / "answers.jsonl", answers);
    train::TrainOptions base = runs_.options("base");
    base.data = {runs_ / "answers.jsonl"};
    base.from = runs_ / "random";
    base.steps = 60;
    base.batch = 4;
    base.learning_rate = 1e-2;
    train::train({}, base);
  }

  std::string make_folder(const std::string& name) const {
    make_directories(runs_ / name);
    return runs_ / name;
  }
  train::TrainOptions options(const std::string& out,
                              train::Objective objective = train::Objective::grpo) const {
    return reinforcement_options(runs_, out, objective);
  }

  Runs runs_;
};

}  // namespace fovea
