#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "data/train_tokenizer.h"
#include "support/runs.h"

namespace fovea {

inline std::string chat(const std::string& question, const std::string& answer) {
  return R"({"messages": [{"role": "user", "content": ")" + question +
         R"("}, {"role": "assistant", "content": ")" + answer + "\"}]}\n";
}

// A small model with the special tokens of chatml, and conversations.
class Chats : public testing::Test {
 protected:
  Chats() {
    text::TokenizerTraining training;
    training.vocabulary = 290;
    training.special_tokens = {"<|im_start|>", "<|im_end|>"};
    train::train_tokenizer({runs_ / "text.txt"}, training)
        ->tokenizer.save(make_folder("tokenizer"));
    train::TrainOptions o = runs_.options("base");
    o.tokenizer = runs_ / "tokenizer";
    o.steps = 1;
    model::Spec spec =
        test::small_llama({.vocabulary = 0, .context = 192, .width = 24, .layers = 1}, 48);
    train::train(spec, o);
    std::string lines;
    for (int i = 0; i < 20; ++i)
      lines += chat("the cat " + std::to_string(i), i % 2 == 0 ? "sat on" : "a mat");
    write("chats.jsonl", lines);
  }

  std::string make_folder(const std::string& name) const {
    make_directories(runs_ / name);
    return runs_ / name;
  }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(runs_ / name, text);
  }
  train::TrainOptions options(const std::string& out) const {
    train::TrainOptions o = runs_.options(out);
    o.data = {runs_ / "chats.jsonl"};
    o.from = runs_ / "base";
    o.chat_template = "chatml";
    o.learning_rate = 1e-2;
    o.batch = 2;
    return o;
  }
  static train::TrainPlan plan_of(const train::TrainOptions& o) {
    return train::plan_training({}, o);
  }
  static bool says(const train::TrainPlan& plan, const std::string& what) {
    return std::any_of(plan.notes.begin(), plan.notes.end(), [&](const std::string& note) {
      return note.find(what) != std::string::npos;
    });
  }

  Runs runs_;
};

}  // namespace fovea
