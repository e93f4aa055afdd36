#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "base/json.h"
#include "base/threads.h"
#include "losses/sequence_log_probabilities.h"
#include "start/evaluate_model.h"
#include "start/prepare.h"
#include "support/chats.h"
#include "support/expect_error.h"
#include "tasks/preference_examples.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

std::string pair_of(const std::string& prompt, const std::string& chosen,
                    const std::string& rejected) {
  return R"({"prompt": ")" + prompt + R"(", "chosen": ")" + chosen + R"(", "rejected": ")" +
         rejected + "\"}\n";
}

// A small model and pairs, whose chosen answers differ from the rejected ones in their first word.
class PreferencesOfChats : public Chats {
 protected:
  PreferencesOfChats() {
    std::string pairs;
    for (int i = 0; i < 20; ++i)
      pairs += pair_of("the cat " + std::to_string(i), i % 2 == 0 ? "sat on" : "sat on a mat",
                       i % 3 == 0 ? "a mat" : "a mat sat on the cat");
    write("pairs.jsonl", pairs);
  }
  TrainOptions preferring(const std::string& out, Objective objective) const {
    TrainOptions o = options(out);
    o.data = {runs_ / "pairs.jsonl"};
    o.objective = objective;
    o.batch = 4;
    o.learning_rate = 2e-3;
    o.steps = 30;
    return o;
  }
  static nlohmann::json log_of(const TrainOptions& o, int64_t step, const char* key) {
    const std::string text = read_file(o.out + "/log.jsonl");
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      const auto line = nlohmann::json::parse(text.substr(begin, end - begin));
      if (line["step"] == step && line.contains(key)) return line;
      begin = end + 1;
    }
    return {};
  }
};

class EachObjective : public PreferencesOfChats, public testing::WithParamInterface<Objective> {};

TEST_P(EachObjective, LearnsThePreference) {
  const TrainOptions o = preferring("out", GetParam());
  TrainPlan plan;
  const TrainResult result = train({}, o, [&](const TrainPlan& told) {
    plan = told;
    return true;
  });
  const bool judged = GetParam() == Objective::kto;
  EXPECT_EQ(plan.objective, GetParam());
  EXPECT_EQ(plan.training_sequences, judged ? 36 : 18);
  EXPECT_EQ(plan.validation_sequences, judged ? 4 : 2);
  const nlohmann::json first = log_of(o, 1, "loss"), last = log_of(o, 30, "loss");
  EXPECT_LT(last["loss"], first["loss"]);
  EXPECT_GT(last["margin"], first["margin"]);
  for (const char* key : {"chosen_reward", "rejected_reward"}) EXPECT_TRUE(last.contains(key));
  EXPECT_EQ(last.contains("accuracy"), !judged);
  const nlohmann::json held_out = log_of(o, 30, "eval_loss");
  EXPECT_GT(held_out["margin"], 0);
  EXPECT_EQ(held_out.value("accuracy", 1.0), 1);
  EXPECT_GT(result.best_loss, 0);
}

TEST_P(EachObjective, GivesTheSameBitsForAnyThreadsAndAfterAResume) {
  const int before = thread_count();
  std::vector<std::string> states;
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    TrainOptions o = preferring("threads" + std::to_string(threads), GetParam());
    o.steps = 6;
    o.accumulate = 2;
    train({}, o);
    states.push_back(state_bytes(o, 6));
  }
  set_threads(before);
  EXPECT_EQ(states[1], states[0]);
  EXPECT_EQ(states[2], states[0]);
  for (const bool keeps_reference : {true, false}) {
    TrainOptions resumed = preferring(keeps_reference ? "resumed" : "lost", GetParam());
    resumed.steps = 6;
    resumed.accumulate = 2;
    resumed.save_every = 3;
    train({}, resumed, {}, stop_after(4));
    if (!keeps_reference) std::filesystem::remove_all(resumed.out + "/reference");
    train({}, resumed);
    EXPECT_EQ(state_bytes(resumed, 6), states[0]) << keeps_reference;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachObjective,
                         testing::Values(Objective::reward, Objective::dpo, Objective::kto,
                                         Objective::orpo, Objective::simpo),
                         [](const auto& of) { return std::string(name_of(of.param)); });

// ORPO without odds has only the mean loss of the chosen answers' tokens, and begins with the same
// batch.
TEST_F(PreferencesOfChats, AddTheLossOfChosenAnswersToThatOfDpo) {
  TrainOptions both = preferring("both", Objective::dpo),
               alone = preferring("alone", Objective::orpo);
  both.preferences.chosen = 0.5;
  alone.preferences.odds = 0;
  std::vector<double> losses;
  for (TrainOptions* o : {&both, &alone}) {
    o->steps = 2;
    train({}, *o);
    losses.push_back(log_of(*o, 1, "loss")["loss"]);
  }
  EXPECT_GT(losses[1], 0.1);
  EXPECT_NEAR(losses[0], std::numbers::ln2 + 0.5 * losses[1], 1e-9);
}

// Before the first step, the model is the reference: each h is 0, with and without adapters.
TEST_F(PreferencesOfChats, BeginAtTheReference) {
  for (const int64_t rank : {0, 4}) {
    TrainOptions o = preferring("out" + std::to_string(rank), Objective::dpo);
    o.lora.rank = rank;
    o.steps = 2;
    train({}, o);
    const nlohmann::json first = log_of(o, 1, "loss");
    EXPECT_DOUBLE_EQ(first["loss"], std::numbers::ln2);
    EXPECT_EQ(first["margin"], 0);
    EXPECT_NE(log_of(o, 2, "loss")["margin"], 0);
  }
}

// The log-probabilities of a text are those of the text alone.
TEST_F(PreferencesOfChats, DoNotDependOnTheBatch) {
  TrainOptions o = preferring("out", Objective::orpo);
  o.batch = 16;  // in four passes
  const Job job = prepare({}, o, true, [](const std::string&) {});
  const auto& examples = dynamic_cast<const PreferenceExamples&>(examples_of(job));
  const NoGradient off;
  const Batch batch = examples.training(0);
  ASSERT_EQ(std::get<WholeTexts>(batch.meaning).texts.size(), 8u);
  const Tensor together = sequence_log_probabilities(job.model, batch, {}).sums;
  const std::vector<int64_t> records = examples.records_in(batch);
  for (size_t n = 0; n < records.size(); ++n) {
    const Batch alone = examples.of({records[n]});
    const Tensor found = sequence_log_probabilities(job.model, alone, {}).sums;
    for (int64_t side : {0, 1})
      EXPECT_EQ(found.data_as<double>()[side],
                together.data_as<double>()[2 * static_cast<int64_t>(n) + side]);
  }
}

TEST_F(PreferencesOfChats, MakeARewardModelThatIsEvaluated) {
  const TrainOptions o = preferring("out", Objective::reward);
  const double margin = train({}, o).metrics.at(1).second;
  const nlohmann::json config = read_json(o.out + "/config.json");
  EXPECT_EQ(config["id2label"], nlohmann::json::parse(R"({"0": "reward"})"));
  EXPECT_EQ(config["architectures"][0], "LlamaForSequenceClassification");
  TrainOptions data;
  data.data = {runs_ / "pairs.jsonl"};
  data.objective = Objective::reward;
  data.from = o.out;
  const infer::Evaluation found = evaluate_by_task(model::Model::open(o.out), data, {}, {});
  EXPECT_EQ(found.objective, "reward");
  EXPECT_EQ(found.sequences, 20);
  EXPECT_EQ(infer::value_of(found.metrics, "accuracy"), 1);
  EXPECT_NEAR(*infer::value_of(found.metrics, "margin"), margin, std::abs(margin));
  data.objective = Objective::dpo;
  expect_error(ErrorKind::InvalidArgument, {"text: ", "only a reward model judges"},
               [&] { evaluate_by_task(model::Model::open(runs_ / "base"), data, {}, {}); });
}

TEST_F(PreferencesOfChats, AreChosenByTheData) {
  TrainOptions o = preferring("out", Objective::automatic);
  EXPECT_EQ(plan_of(o).objective, Objective::dpo);
  write("pairs.jsonl", R"({"prompt": "a", "completion": "b", "label": true})"
                       "\n"
                       R"({"prompt": "a", "completion": "c", "label": false})"
                       "\n");
  o.validation = 0;
  EXPECT_EQ(plan_of(o).objective, Objective::kto);
  o.objective = Objective::dpo;
  expect_error(ErrorKind::BadFile, {"pairs.jsonl:1: chosen is missing"}, [&] { plan_of(o); });
}

// Each epoch contains the pairs of a file as often as its weight says; those for validation count
// once.
TEST_F(PreferencesOfChats, AreWeightedByFile) {
  write("more.jsonl", pair_of("the mat", "sat", "on") + pair_of("a mat", "sat", "on"));
  for (const Objective objective : {Objective::dpo, Objective::kto}) {
    TrainOptions o = preferring("out", objective);
    o.data.push_back(runs_ / "more.jsonl:3");
    o.validation = 0;
    const int64_t answers = objective == Objective::kto ? 2 : 1;
    const TrainPlan plan = plan_of(o);
    EXPECT_EQ(plan.training_sequences, 22 * answers);
    EXPECT_DOUBLE_EQ(plan.epochs, 30.0 * 4 / static_cast<double>((20 + 3 * 2) * answers));
    const Job job = prepare({}, o, true, [](const std::string&) {});
    const auto& examples = dynamic_cast<const PreferenceExamples&>(examples_of(job));
    std::map<int64_t, int> counts;
    const int64_t two_epochs = 2 * 26 * answers / job.options.batch;
    for (int64_t pass = 0; pass < two_epochs; ++pass)
      for (const int64_t record : examples.records_of(pass)) ++counts[record];
    for (const auto& [record, count] : counts)
      EXPECT_EQ(count, record < 20 * answers ? 2 : 6) << record;
    EXPECT_EQ(std::ssize(counts), 22 * answers);
  }
  TrainOptions o = preferring("out", Objective::dpo);
  o.validation_chats = {runs_ / "more.jsonl:3"};
  expect_error(ErrorKind::InvalidArgument, {"validation_chats: ", "has a weight"},
               [&] { plan_of(o); });
}

TEST_F(PreferencesOfChats, CountWhatCannotBeUsed) {
  write("pairs.jsonl",
        pair_of("a", "b", "c") + pair_of("a", "b", "b") + pair_of(std::string(300, 'z'), "b", "c"));
  TrainOptions o = preferring("out", Objective::dpo);
  o.validation = 0;
  o.length = 64;
  const TrainPlan plan = plan_of(o);
  EXPECT_EQ(plan.training_sequences, 1);
  EXPECT_TRUE(says(plan, "1 pairs of equal answers are skipped"));
  EXPECT_TRUE(says(plan, "2 texts with more than 64 tokens are truncated"));
  EXPECT_TRUE(says(plan, "2 texts without a token of the answer are skipped"));
}

TEST_F(PreferencesOfChats, RefuseOptionsOfOtherObjectives) {
  const auto refused = [&](Objective objective, const char* what, const auto& change) {
    TrainOptions o = preferring("out", objective);
    change(o);
    expect_error(ErrorKind::InvalidArgument, {what}, [&] { plan_of(o); });
  };
  refused(Objective::orpo,
          "preference_beta: has no effect in this run; expected `objective` dpo, kto or simpo",
          [](auto& o) { o.preferences.beta = 1; });
  refused(Objective::kto,
          "preference_loss: ", [](auto& o) { o.preferences.loss = PreferenceLoss::ipo; });
  refused(Objective::simpo, "label_smoothing: ", [](auto& o) { o.label_smoothing = 0.1; });
  refused(Objective::dpo, "label_smoothing: 0.6", [](auto& o) { o.label_smoothing = 0.6; });
  refused(Objective::dpo, "from: not given", [](auto& o) { o.from.clear(); });
  refused(Objective::dpo, "best_by: ", [](auto& o) { o.best_by = "bleu"; });
}

// The prompt is the source, and the answers are targets.
TEST_F(PreferencesOfChats, SuitEncoderDecoders) {
  TrainOptions base = runs_.options("translator");
  write("lines.tsv", "the cat 1\tsat on a mat\nthe cat 2\ton the mat\n");
  base.data.clear();
  base.pairs = {runs_ / "lines.tsv"};
  base.validation = 0;
  base.tokenizer = runs_ / "tokenizer";
  base.steps = 1;
  train(test::scaled_down(model::preset("translate-tiny"),
                          {.vocabulary = 0, .context = 64, .width = 32, .layers = 1}, 32),
        base);
  for (const Objective objective : {Objective::dpo, Objective::kto, Objective::simpo}) {
    TrainOptions o = preferring(std::string("out-") + name_of(objective), objective);
    o.from = base.out;
    o.chat_template.clear();
    const TrainResult result = train({}, o);
    EXPECT_EQ(result.step, o.steps);
    EXPECT_GT(log_of(o, 30, "eval_loss")["margin"], 0) << name_of(objective);
    EXPECT_LT(log_of(o, 30, "loss")["loss"], log_of(o, 1, "loss")["loss"]) << name_of(objective);
    std::string trained;
    for (const ExamplePart& part : training_example(o))
      if (part.trained && part.number == 0) trained += part.text;
    EXPECT_TRUE(trained.starts_with("sat on")) << trained;
  }
}

// An encoder reads the prompt and the answer as a pair of texts.
TEST_F(PreferencesOfChats, MakeARewardModelOfAnEncoder) {
  TrainOptions base = runs_.options("encoder");
  base.tokenizer = "wordpiece:300";
  base.steps = 1;
  train(small_encoder(), base);
  TrainOptions o = preferring("out", Objective::reward);
  o.from = base.out;
  o.chat_template.clear();
  train({}, o);
  EXPECT_GT(log_of(o, 30, "eval_loss")["margin"], 0);
  EXPECT_EQ(read_json(o.out + "/config.json")["architectures"][0], "BertForSequenceClassification");
}

TEST_F(PreferencesOfChats, ShowAPair) {
  const std::vector<ExamplePart> parts = training_example(preferring("", Objective::dpo));
  std::string trained[2];
  for (const ExamplePart& part : parts)
    if (part.trained) trained[part.number] += part.text;
  EXPECT_EQ(trained[0], "sat on<|im_end|>");
  EXPECT_EQ(trained[1], "a mat<|im_end|>");
}

}  // namespace
}  // namespace fovea::train
