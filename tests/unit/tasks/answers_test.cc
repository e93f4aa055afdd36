// Training on questions about texts, in the format of SQuAD.

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "loading/loading.h"
#include "losses/target_loss.h"
#include "start/evaluate_model.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

class Answers : public testing::Test {
 protected:
  // Returns options for questions whose answers are the words before "is"; some have none.
  TrainOptions options(const std::string& out, bool optional, int64_t padding_words = 0) const {
    const char* const cities[] = {"rome", "paris", "bonn"};
    nlohmann::json paragraphs = nlohmann::json::array();
    for (uint64_t i = 0; i < 90; ++i) {
      const auto random = philox(3, Stream::shuffle, 30, i);
      const bool absent = optional && random[1] % 3 == 0;
      std::string context;
      for (int64_t n = 0; n < padding_words; ++n) context += "and so on ";
      const std::string city = cities[random[0] % 3];
      nlohmann::json answers = nlohmann::json::array();
      if (!absent) answers.push_back({{"text", city}, {"answer_start", context.size()}});
      context += absent ? "nothing is here" : city + " is here";
      const nlohmann::json question = {{"id", std::to_string(i)},
                                       {"question", "where"},
                                       {"answers", answers},
                                       {"is_impossible", absent}};
      paragraphs.push_back({{"context", context}, {"qas", {question}}});
    }
    const nlohmann::json file = {{"data", {{{"paragraphs", paragraphs}}}}};
    write_file_atomically(runs_ / "questions.json", file.dump());
    TrainOptions o = runs_.options(out);
    o.data.clear();
    o.labels = {runs_ / "questions.json"};
    o.tokenizer = "wordpiece:120";
    o.learning_rate = 1e-2;
    o.batch = 8;
    o.steps = 80;
    o.best_by = "f1";
    return o;
  }
  static double metric(const infer::MetricValues& values, const char* name) {
    return infer::value_of(values, name).value_or(-9);
  }
  static infer::Evaluation evaluated(const TrainOptions& o) {
    TrainOptions data;
    data.labels = o.labels;
    return evaluate_by_task(model::Model::open(o.out), data, {}, {});
  }

  Runs runs_;
};

TEST_F(Answers, AreLearnt) {
  for (const bool optional : {false, true}) {
    const TrainOptions o = options(optional ? "optional" : "all", optional);
    const TrainResult result = train(small_encoder(), o);
    EXPECT_GT(metric(result.metrics, "f1"), 95) << optional;
    EXPECT_EQ(read_json(o.out + "/config.json")["architectures"][0], "BertForQuestionAnswering");
    const infer::Evaluation found = evaluated(o);
    EXPECT_EQ(found.objective, "answers");
    EXPECT_GT(metric(found.metrics, "exact"), 95);
  }
}

TEST_F(Answers, AreFoundInWindowsOfLongContexts) {
  TrainOptions o = options("long", true, 12);
  o.length = 24;
  std::vector<std::string> notes;
  const TrainResult result = train(small_encoder(), o, [&](const TrainPlan& plan) {
    notes = plan.notes;
    return true;
  });
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("windows of at most 24 tokens") != note.npos;
  }));
  EXPECT_GT(metric(result.metrics, "f1"), 90);
  EXPECT_GT(metric(evaluated(o).metrics, "f1"), 90);
}

TEST_F(Answers, NeedASuitableModelAndOptions) {
  TrainOptions o = options("out", false);
  expect_error(ErrorKind::InvalidArgument, {"labels: questions need a model of text"},
               [&] { train(small_t5(), o); });
  o.label_smoothing = 0.1;
  expect_error(ErrorKind::InvalidArgument, {"labels: questions are given with", "label_smoothing"},
               [&] { train(small_encoder(), o); });
  o.label_smoothing = 0;
  o.length = 8;
  expect_error(ErrorKind::InvalidArgument, {"length: the question 0", "of 8"},
               [&] { train(small_encoder(), o); });
  o = runs_.options("encoder");
  o.tokenizer = "wordpiece:60";
  o.steps = 1;
  train(small_encoder(), o);
  o.labels = {runs_ / "questions.json"};
  expect_error(ErrorKind::InvalidArgument, {"labels: questions need a model with a head"},
               [&] { evaluated(o); });
}

TEST(SpanLoss, IgnoresPadding) {
  const Tensor logits = tensor_of({1, 2, 3, 4, 5, 6, 9, 9}, {1, 4, 2});
  Batch batch;
  batch.labels = empty({1, 2}, DType::i32);
  batch.labels.data_as<int32_t>()[0] = 1;
  batch.labels.data_as<int32_t>()[1] = 2;
  batch.meaning = AnswerSpans{{}, {{1, 3}}};
  batch.source.ids = zeros({1, 4}, DType::i32);
  batch.source_valid = {{0, 3}};
  const double begin = std::log(std::exp(1) + std::exp(3) + std::exp(5)) - 3;
  const double end = std::log(std::exp(2) + std::exp(4) + std::exp(6)) - 6;
  EXPECT_NEAR(number_of(target_loss(logits, batch.labels, batch, 2)), (begin + end) / 2, 1e-6);
}

}  // namespace
}  // namespace fovea::train
