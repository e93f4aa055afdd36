#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "loop/evaluation.h"
#include "open/directory.h"
#include "start/prepare.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

class Objectives : public testing::Test {
 protected:
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.tokenizer = "wordpiece:60";
    o.learning_rate = 1e-2;
    o.batch = 8;
    o.steps = 60;
    return o;
  }
  // Returns options for lines whose label depends on one of their words.
  TrainOptions labelled(const std::string& out) const {
    std::string lines;
    for (uint64_t i = 0; i < 200; ++i) {
      const auto words = philox(3, Stream::shuffle, 30, i);
      const bool good = words[0] % 2 == 0;
      const std::string film = words[1] % 2 == 0 ? "the film was " : "a story that is ";
      lines += film + (good ? "lovely" : "awful") + (words[2] % 2 == 0 ? " today" : "") + "\t" +
               (good ? "positive" : "negative") + "\n";
    }
    write_file_atomically(runs_ / "labels.tsv", lines);
    TrainOptions o = options(out);
    o.data.clear();
    o.labels = {runs_ / "labels.tsv"};
    return o;
  }
  static double metric(const TrainResult& result, const std::string& name) {
    for (const auto& [key, value] : result.metrics)
      if (key == name) return value;
    return -1;
  }
  std::string family(const TrainOptions& o) const {
    return model::open_model_files(o.out, model::Weights::mapped).origin.family->model_type;
  }

  Runs runs_;
};

TEST_F(Objectives, PretrainAnEncoderAndFineTuneAClassifier) {
  TrainOptions o = options("masked");
  const TrainResult result = train(small_encoder(), o);
  EXPECT_LT(result.best_loss, 1.9);  // six words, some of which are determined by their neighbours
  EXPECT_GE(metric(result, "accuracy"), 0);
  EXPECT_EQ(family(o), "bert");

  TrainOptions next = labelled("labels");
  next.from = o.out;
  next.tokenizer = TrainOptions().tokenizer;  // that of the model
  next.steps = 40;
  std::vector<std::string> notes;
  const TrainResult labelled = train({}, next, [&](const TrainPlan& plan) {
    notes = plan.notes;
    EXPECT_EQ(plan.objective, Objective::labels);
    EXPECT_EQ(plan.training_sequences, 180);
    return true;
  });
  EXPECT_NE(std::find(notes.begin(), notes.end(), "a new head for 2 labels"), notes.end());
  const model::ModelFiles files = model::open_model_files(next.out, model::Weights::mapped);
  EXPECT_EQ(files.model.spec.head.kind, model::HeadKind::sequence);
  EXPECT_EQ(files.origin.labels, (std::vector<std::string>{"negative", "positive"}));
  EXPECT_EQ(read_json(next.out + "/config.json")["architectures"][0],
            "BertForSequenceClassification");

  // In a second run, the checkpoint's head is used.
  TrainOptions again = next;
  again.from = next.out;
  again.out = runs_ / "again";
  again.steps = 1;
  again.learning_rate = 0;
  const TrainResult kept = train({}, again);
  EXPECT_NEAR(kept.best_loss, labelled.best_loss, 1e-6);
}

TEST_F(Objectives, TrainAClassifierFromScratch) {
  TrainOptions o = labelled("labels");
  o.tokenizer = "wordpiece:100";
  o.steps = 80;
  const TrainResult result = train(small_encoder(), o);
  EXPECT_EQ(metric(result, "accuracy"), 1);
  EXPECT_EQ(metric(result, "f1"), 1);
  EXPECT_EQ(family(o), "bert");
}

TEST_F(Objectives, TrainADecoderToLabelWords) {
  std::string lines;
  for (uint64_t i = 0; i < 100; ++i) {
    const bool first = philox(3, Stream::shuffle, 31, i)[0] % 2 == 0;
    lines += first ? R"({"words": ["see", "Paris", "now"], "labels": ["O", "PLACE", "O"]})"
                   : R"({"words": ["Paris", "sees", "us"], "labels": ["PLACE", "O", "O"]})";
    lines += "\n";
  }
  write_file_atomically(runs_ / "words.jsonl", lines);
  TrainOptions o = options("words");
  o.data.clear();
  o.labels = {runs_ / "words.jsonl"};
  o.tokenizer = "bpe:400";
  const TrainResult result = train(small_spec(), o);
  EXPECT_EQ(metric(result, "accuracy"), 1);
}

TEST_F(Objectives, TrainAnEncoderDecoderOnSpans) {
  TrainOptions o = options("spans");
  o.tokenizer = "bpe:400";
  TrainPlan plan;
  double first = 0;
  const TrainResult result = train(
      small_t5(), o,
      [&](const TrainPlan& told) {
        plan = told;
        return true;
      },
      [&](const TrainProgress& progress) {
        if (progress.step == 1) first = progress.loss;
        return true;
      });
  EXPECT_EQ(plan.objective, Objective::spans);
  EXPECT_LT(result.loss, 0.7 * first);
  EXPECT_EQ(family(o), "t5");

  // Continues training from the directory, with windows of a different length.
  TrainOptions more = o;
  more.from = o.out;
  more.tokenizer = TrainOptions().tokenizer;  // that of the model
  more.out = runs_ / "more";
  more.steps = 3;
  more.length = 32;
  EXPECT_LT(train({}, more).loss, first);
  EXPECT_EQ(family(more), "t5");
}

TEST_F(Objectives, KeepTheFamilyInFineTuning) {
  model::Spec spec = small_spec();
  model::StackSpec& d = *spec.decoder;
  d.position.kind = model::PositionKind::rotary;
  d.norm.kind = model::NormKind::rms;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  d.ffn.gated = true;
  d.ffn.activation = Activation::silu;
  spec.head.tied = false;
  TrainOptions o = runs_.options("first");
  train(spec, o);
  EXPECT_EQ(family(o), "llama");
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(read_file(o.out + "/config.json"));
  config.erase("attention_bias");
  config.erase("mlp_bias");
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  config["sliding_window"] = nullptr;
  config["bos_token_id"] = 3;
  write_file_atomically(o.out + "/config.json", config.dump());
  TrainOptions next = runs_.options("second");
  next.from = o.out;
  next.tokenizer = TrainOptions().tokenizer;  // that of the model
  next.steps = 2;
  train({}, next);
  EXPECT_EQ(family(next), "mistral");
  EXPECT_EQ(read_json(next.out + "/config.json")["bos_token_id"], 3);
}

TEST_F(Objectives, MustSuitTheModel) {
  TrainOptions o = options("out");
  o.tokenizer = "bpe:400";
  o.objective = Objective::masked;
  expect_error(ErrorKind::InvalidArgument, {"objective: masked", "text encoder"},
               [&] { train(small_spec(), o); });
  o.objective = Objective::spans;
  expect_error(ErrorKind::InvalidArgument, {"objective: spans", "encoder-decoder"},
               [&] { train(small_encoder(), o); });
  o.objective = Objective::next_token;
  expect_error(ErrorKind::InvalidArgument, {"next-token objective", "decoder without an encoder"},
               [&] { train(small_encoder(), o); });
  write_file_atomically(runs_ / "words.jsonl",
                        "{\"words\": [\"a\"], \"labels\": [\"x\"]}\n"
                        "{\"words\": [\"a\"], \"labels\": [\"y\"]}\n");
  TrainOptions words = labelled("out");
  words.labels = {runs_ / "words.jsonl"};
  words.validation = 0;
  expect_error(ErrorKind::InvalidArgument, {"labels: ", "do not suit an encoder-decoder"},
               [&] { train(small_t5(), words); });
}

TEST_F(Objectives, RefuseInconsistentLabels) {
  TrainOptions o = labelled("out");
  write_file_atomically(runs_ / "one.tsv", "a\tx\nb\tx\n");
  write_file_atomically(runs_ / "other.tsv", "a\tunheard\n");
  write_file_atomically(runs_ / "words.jsonl", R"({"words": ["a"], "labels": ["x"]})");
  o.validation_labels = {runs_ / "other.tsv"};
  expect_error(ErrorKind::BadFile, {"validation_labels: ", "unheard", "negative, positive"},
               [&] { train(small_encoder(), o); });
  o.validation_labels = {runs_ / "words.jsonl"};
  expect_error(ErrorKind::InvalidArgument, {"has one label per word"},
               [&] { train(small_encoder(), o); });
  o.validation_labels.clear();
  o.labels = {runs_ / "one.tsv"};
  o.validation = 0;
  expect_error(ErrorKind::InvalidArgument, {"one.tsv", "only one label"},
               [&] { train(small_encoder(), o); });
}

}  // namespace
}  // namespace fovea::train
