#include <gtest/gtest.h>

#include <cmath>

#include "fovea/evaluate.h"
#include "fovea/text/chat.h"
#include "open/model_parts.h"
#include "support/chats.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

class EvaluatedChats : public Chats {
 protected:
  // Evaluates a model on a file; a model without a template uses chatml.
  infer::Evaluation evaluated(const model::Model& model, const std::string& name,
                              train::TrainOn train_on = train::TrainOn::all) const {
    EvaluationData data;
    data.text = {runs_ / name};
    if (!text::ModelChat::has_template(model::parts_of(model).path)) data.chat_template = "chatml";
    data.train_on = train_on;
    return evaluate(model, data);
  }
};

TEST_F(EvaluatedChats, HaveTheLossOfTheirAnswers) {
  train::TrainOptions o = options("out");
  o.epochs = 60;
  o.validation = 0;
  train::train({}, o);
  const model::Model model = model::Model::open(o.out);
  // Each record once, with the template of the model.
  const infer::Evaluation all = evaluated(model, "chats.jsonl");
  EXPECT_EQ(all.objective, "chats");
  EXPECT_EQ(all.sequences, 20);
  EXPECT_NEAR(all.perplexity, std::exp(all.loss), 1e-9);
  EXPECT_GT(infer::value_of(all.metrics, "accuracy").value(), 0.9);
  double loss = 0;
  int64_t tokens = 0, right = 0;
  for (int i = 0; i < 20; ++i) {
    write("one.jsonl", chat("the cat " + std::to_string(i), i % 2 == 0 ? "sat on" : "a mat"));
    const infer::Evaluation one = evaluated(model, "one.jsonl");
    EXPECT_EQ(one.sequences, 1);
    loss += one.loss * static_cast<double>(one.tokens);
    tokens += one.tokens;
    right += std::llround(infer::value_of(one.metrics, "accuracy").value() *
                          static_cast<double>(one.tokens));
  }
  EXPECT_EQ(all.tokens, tokens);
  EXPECT_NEAR(all.loss, loss / static_cast<double>(tokens), 1e-6);
  EXPECT_NEAR(infer::value_of(all.metrics, "accuracy").value(),
              static_cast<double>(right) / static_cast<double>(tokens), 1e-9);
}

// Every shape of a record that training accepts; `last` predicts fewer answers.
TEST_F(EvaluatedChats, MayHaveEveryShapeOfTraining) {
  const model::Model base = model::Model::open(runs_ / "base");
  write("turns.jsonl",
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
        R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"
        "\n"
        R"({"prompt": "the", "completion": "cat"})"
        "\n"
        R"({"instruction": "sit", "input": "on", "output": "a mat"})"
        "\n"
        R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})"
        "\n");
  const infer::Evaluation turns = evaluated(base, "turns.jsonl");
  EXPECT_EQ(turns.sequences, 4);
  EXPECT_GT(turns.tokens, evaluated(base, "turns.jsonl", train::TrainOn::last).tokens);
  // The base model lacks a template, and its tokenizer the special tokens of llama3.
  EvaluationData data;
  data.text = {runs_ / "chats.jsonl"};
  expect_error(ErrorKind::InvalidArgument, {"chat_template: not given"},
               [&] { evaluate(base, data); });
  data.chat_template = "chatml";
  EXPECT_EQ(evaluate(base, data).sequences, 20);
  data.chat_template = "llama3";
  expect_error(ErrorKind::InvalidArgument, {"chat_template: the tokenizer lacks"},
               [&] { evaluate(base, data); });
  data.text = {runs_ / "text.txt"};
  expect_error(ErrorKind::InvalidArgument, {"chat_template: given without conversations"},
               [&] { evaluate(base, data); });
}

}  // namespace
}  // namespace fovea
