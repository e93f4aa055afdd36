// Training on labels: the kinds of labels, on models of every shape.

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "base/threads.h"
#include "fovea/core/ops.h"
#include "fovea/core/random.h"
#include "losses/target_loss.h"
#include "open/directory.h"
#include "start/evaluate_model.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

class Labels : public testing::Test {
 protected:
  // Returns options for texts of two of four words, whose `line` depends on the words.
  TrainOptions options(const std::string& out, const std::string& file,
                       const std::function<std::string(bool, bool)>& line) const {
    std::string lines;
    for (uint64_t i = 0; i < 120; ++i) {
      const auto words = philox(3, Stream::shuffle, 30, i);
      lines += line(words[0] % 2 == 0, words[1] % 2 == 0);
    }
    write_file_atomically(runs_ / file, lines);
    TrainOptions o = runs_.options(out);
    o.data.clear();
    o.labels = {runs_ / file};
    o.tokenizer = "bpe:300";
    o.learning_rate = 1e-2;
    o.batch = 8;
    o.steps = 60;
    return o;
  }
  static std::string text_of(bool good, bool long_one) {
    return std::string(long_one ? "a long film that is " : "a film that is ") +
           (good ? "lovely" : "awful");
  }
  TrainOptions one(const std::string& out) const {
    return options(out, "one.tsv", [](bool good, bool long_one) {
      return text_of(good, long_one) + "\t" + (good ? "pos" : "neg") + "\n";
    });
  }
  TrainOptions several(const std::string& out) const {
    return options(out, "several.jsonl", [](bool good, bool long_one) {
      std::string labels = good ? "\"good\"" : "";
      if (long_one) labels += labels.empty() ? "\"long\"" : ", \"long\"";
      return R"({"text": ")" + text_of(good, long_one) + R"(", "labels": [)" + labels + "]}\n";
    });
  }
  TrainOptions numbers(const std::string& out) const {
    return options(out, "numbers.tsv", [](bool good, bool long_one) {
      return text_of(good, long_one) + (good ? "\t1.5\n" : long_one ? "\t-0.5\n" : "\t0.5\n");
    });
  }
  static infer::Evaluation evaluated(const TrainOptions& o) {
    TrainOptions data;
    data.labels = o.labels;
    return evaluate_by_task(model::Model::open(o.out), data, {}, {});
  }
  static nlohmann::json config(const TrainOptions& o) { return read_json(o.out + "/config.json"); }
  static double metric(const TrainResult& result, const char* name) {
    return infer::value_of(result.metrics, name).value_or(-9);
  }

  Runs runs_;
};

// An objective of one's own: label smoothing with the z-loss (Chowdhery et al. 2022, section 5),
// which keeps the logarithm z of the softmax's sum near 0.
//   -(1 - s) log p[label] - s mean(log p) + c z^2
Tensor smoothed_z_loss(const Tensor& logits, const Tensor& labels) {
  constexpr float s = 0.1f, c = 1e-2f;
  const int64_t R = logits.dim(0), V = logits.dim(1);
  const Tensor log_p = log_probability(logits, labels);                                  // [R]
  const Tensor z = subtract(pick(logits, labels.view({R, 1})).view({R}), log_p);         // [R]
  const Tensor mean_logit = linear(logits, full({1, V}, 1.0 / static_cast<double>(V)));  // [R, 1]
  const Tensor mean_log_p = subtract(mean_logit.view({R}), z);                           // [R]
  const Tensor smoothed = add(scale(log_p, s - 1), scale(mean_log_p, -s));
  return sum(add(smoothed, scale(multiply(z, z), c)));
}

TEST_F(Labels, AreLearntByAnObjectiveOfOnesOwn) {
  TrainOptions o = one("z_loss");
  int calls = 0;
  o.loss = [&](const Tensor& logits, const Tensor& labels) {
    ++calls;
    const Tensor own = smoothed_z_loss(logits, labels);
    const NoGradient off;  // without the z-loss, it is the cross-entropy with label smoothing
    const Tensor z = subtract(pick(logits, labels.view({labels.size(), 1})).view({labels.size()}),
                              log_probability(logits, labels));
    const double smoothed = number_of(own) - 1e-2 * number_of(sum(multiply(z, z)));
    EXPECT_NEAR(smoothed, number_of(cross_entropy(logits, labels, 1, 0.1f)), 1e-4);
    return own;
  };
  const TrainResult result = train(small_encoder(), o);
  EXPECT_GE(calls, result.step);
  EXPECT_GT(metric(result, "accuracy"), 0.8);
  TrainOptions refused = several("z_loss_several");
  refused.loss = smoothed_z_loss;
  expect_error(ErrorKind::InvalidArgument, {"loss", "one label per text"},
               [&] { train(small_encoder(), refused); });
}

TEST_F(Labels, AreLearntByModelsOfEveryShape) {
  for (const auto& [name, spec] :
       {std::pair{"encoder", small_encoder()}, {"decoder", small_spec()}, {"both", small_t5()}}) {
    const TrainOptions o = one(std::string("one ") + name);
    EXPECT_EQ(metric(train(spec, o), "accuracy"), 1) << name;
    EXPECT_EQ(config(o)["problem_type"], "single_label_classification");
    TrainOptions more = several(std::string("several ") + name);
    more.best_by = "f1_micro";
    more.steps = 250;
    more.evaluate_every = 50;
    EXPECT_GT(metric(train(spec, more), "f1_micro"), 0.85) << name;
    EXPECT_EQ(config(more)["problem_type"], "multi_label_classification");
    const TrainOptions number = numbers(std::string("numbers ") + name);
    EXPECT_GT(metric(train(spec, number), "pearson"), 0.95) << name;
    EXPECT_EQ(config(number)["problem_type"], "regression");
    for (const TrainOptions* each : {&o, &std::as_const(more), &number}) {
      const infer::Evaluation found = evaluated(*each);
      EXPECT_LT(found.loss, 0.5) << each->out;
      EXPECT_EQ(found.labels.has_value(), each != &number);
      // The checkpoint's head is used further.
      TrainOptions again = *each;
      again.from = each->out;
      again.tokenizer = TrainOptions().tokenizer;  // that of the model
      again.out = each->out + " again";
      again.steps = 1;
      again.learning_rate = 0;
      again.validation = 0.5;
      EXPECT_LT(train({}, again).best_loss, 0.5) << again.out;
    }
  }
}

TEST_F(Labels, AreSavedInTheClassesOfTransformers) {
  TrainOptions o = one("out");
  o.steps = 1;
  train(small_t5(), o);
  EXPECT_EQ(config(o)["architectures"][0], "T5ForSequenceClassification");
  EXPECT_EQ(config(o)["tie_word_embeddings"], true);
  const model::ModelFiles files = model::open_model_files(o.out, model::Weights::mapped);
  EXPECT_EQ(files.model.spec.head.pooling, model::Pooling::last);
  o = one("decoder");
  o.steps = 1;
  train(small_spec(), o);
  EXPECT_TRUE(
      config(o)["architectures"][0].get<std::string>().ends_with("ForSequenceClassification"));
}

TEST_F(Labels, GiveTheSameBitsForThreadsAndAfterAResume) {
  const int before = thread_count();
  const auto weights_of = [&](TrainOptions o, int threads) {
    set_threads(threads);
    o.steps = 12;
    o.accumulate = 2;
    o.save_every = 4;
    if (threads == 3) train(small_t5(), o, {}, stop_after(6));
    train(small_t5(), o);
    return read_file(o.out + "/model.safetensors");
  };
  const auto weighted = [&](const std::string& out, auto o) {
    o.out = runs_ / out;
    o.class_weights = "balanced";
    return o;
  };
  EXPECT_EQ(weights_of(weighted("a", several("")), 1), weights_of(weighted("b", several("")), 3));
  EXPECT_EQ(weights_of(weighted("c", one("")), 1), weights_of(weighted("d", one("")), 3));
  EXPECT_EQ(weights_of(numbers("e"), 1), weights_of(numbers("f"), 3));
  set_threads(before);
}

TEST_F(Labels, AreLearntByAdapters) {
  TrainOptions base = one("base");
  base.steps = 2;
  train(small_t5(), base);
  TrainOptions o = several("adapter");
  o.from = base.out;
  o.tokenizer = TrainOptions().tokenizer;  // that of the model
  o.lora.rank = 4;
  o.steps = 80;
  EXPECT_GT(metric(train({}, o), "f1_micro"), 0.9);
  EXPECT_GT(infer::value_of(evaluated(o).metrics, "f1_micro").value(), 0.9);
}

TEST_F(Labels, RefuseOptionsThatDoNotApply) {
  TrainOptions o = one("out");
  const auto refuse = [&](std::initializer_list<std::string> texts) {
    expect_error(ErrorKind::InvalidArgument, texts, [&] { train(small_encoder(), o); });
  };
  o.class_weights = "pos=2,other=1";
  refuse({"class_weights: \"other\" is not a label", "neg, pos"});
  o.class_weights = "pos=-2";
  refuse({"class_weights: \"pos=-2\"", "expected balanced, or NAME=WEIGHT"});
  o.class_weights = "pos=2";
  o.label_smoothing = 0.1;
  refuse({"class_weights: given with `label_smoothing`"});
  o = several("out");
  o.label_smoothing = 0.1;
  refuse({"label_smoothing: given for several labels per text"});
  o = numbers("out");
  o.class_weights = "balanced";
  refuse({"class_weights: given for a number per text"});
  o = one("out");
  o.best_by = "pearson";
  refuse({"best_by: pearson is not measured", "f1_micro or mcc or loss"});
  o.best_by = "loss";
  o.problem_type = model::ProblemType::regression;
  expect_error(ErrorKind::BadFile, {"one.tsv:1", "\"label\" is \"", "a number"},
               [&] { train(small_encoder(), o); });
}

// -w log sigmoid(target * logit) / L, (logit - target)^2 and -w log softmax(logits)[label]
TEST(TargetLoss, IsThatOfItsDefinition) {
  const Tensor logits = tensor_of({0.5f, -1, 2, 0, 3, -2}, {2, 3});
  Batch batch;
  batch.labels = zeros({2}, DType::i32);
  const Tensor targets = tensor_of({1, -1, -1, 1, 1, -1}, {2, 3});
  const auto weights = std::make_shared<const std::vector<float>>(std::vector<float>{2, 3, 4});
  batch.meaning = LabelSets{targets, weights};
  const auto log_p = [](double x) { return -std::log1p(std::exp(-x)); };
  const double sets =
      2 * log_p(0.5) + log_p(1) + log_p(-2) + 2 * log_p(0) + 3 * log_p(3) + log_p(2);
  EXPECT_NEAR(number_of(target_loss(logits, batch.labels, batch, 2)), -sets / 3 / 2, 1e-6);
  batch.meaning = Numbers{targets};
  EXPECT_NEAR(number_of(target_loss(logits, batch.labels, batch, 1)), 0.25 + 0 + 9 + 1 + 4 + 1,
              1e-5);
  batch.meaning = WeightedLabels{weights};
  const Tensor labels = empty({2}, DType::i32);
  labels.data_as<int32_t>()[0] = 2;
  labels.data_as<int32_t>()[1] = -1;
  const double total = std::exp(0.5) + std::exp(-1) + std::exp(2);
  EXPECT_NEAR(number_of(target_loss(logits, labels, batch, 1)), -4 * (2 - std::log(total)), 1e-5);
}

}  // namespace
}  // namespace fovea::train
