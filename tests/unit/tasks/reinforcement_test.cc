#include <algorithm>
#include <map>

#include "base/threads.h"
#include "loop/generate_answers.h"
#include "loop/policy.h"
#include "open/directory.h"
#include "support/expect_error.h"
#include "support/run_logs.h"
#include "support/sums.h"

namespace fovea::train {
namespace {

class Reinforce : public Sums {
 protected:
  ~Reinforce() override { set_threads(threads_); }

  TrainOptions ppo(const std::string& out) const {
    TrainOptions o = options(out, Objective::ppo);
    o.reinforcement.batch_epochs = 2;
    o.reinforcement.minibatches = 2;
    o.reinforcement.kl_target = 1;
    return o;
  }
  static TrainOptions reused(TrainOptions o) {  // grpo with several steps for each batch
    o.reinforcement.batch_epochs = 3;
    o.reinforcement.kl_weight = 0.1;
    return o;
  }

  const int threads_ = thread_count();
};

TEST_F(Reinforce, GrpoLearnsFromRewardsAlone) {
  TrainOptions o = options("out");
  o.steps = 300;
  o.reinforcement.prompts = 8;
  o.reinforcement.generations = 8;
  o.learning_rate = 2e-3;
  o.validation = 0.2;
  const TrainResult result = train({}, o);
  ASSERT_EQ(result.metrics.at(0).first, "reward");
  const std::map<int64_t, double> reward = logged(o, "reward");
  EXPECT_LT(reward.at(1), 0.6);
  EXPECT_GT(reward.at(300), reward.at(1) + 0.2);
}

TEST_F(Reinforce, TheRatioOfTheFirstStepIsExactlyOne) {
  TrainOptions o = reused(options("out"));
  train({}, o);
  const std::map<int64_t, double> moved = logged(o, "update_kl");
  EXPECT_EQ(moved.at(1), 0);  // the policy has not changed since it wrote
  EXPECT_GT(moved.at(2), 0);
  EXPECT_EQ(moved.at(4), 0);
  const std::map<int64_t, double> kl = logged(o, "kl"), reward = logged(o, "reward");
  EXPECT_EQ(kl.at(1), 0);  // the reference is the initial model, with the same bits
  EXPECT_GT(kl.at(4), 0);
  EXPECT_EQ(reward.size(), 2u);  // two batches
}

TEST_F(Reinforce, WritingAndTrainingComputeTheSameProbabilitiesInFp32) {
  const model::ModelFiles files = model::open_model_files(runs_ / "base", model::Weights::owned);
  const text::Tokenizer tokenizer = text::Tokenizer::open(runs_ / "base");
  const std::vector<std::vector<int32_t>> prompts = {tokenizer.encode("1+2="),
                                                     tokenizer.encode("3+4=1+")};
  const std::vector<infer::Generation> written =
      generate_answers(files.model, tokenizer, {}, {{&prompts[0], 1, 20}, {&prompts[1], 2, 20}},
                       {.generations = 3, .logprobs = 0});
  RolloutBatch batch;
  for (size_t i = 0; i < written.size(); ++i) {
    batch.ids.push_back(prompts[i / 3]);
    batch.prompts.push_back(static_cast<int32_t>(prompts[i / 3].size()));
    batch.ids.back().insert(batch.ids.back().end(), written[i].ids.begin(), written[i].ids.end());
    batch.trained.push_back(1);
  }
  for (const int64_t size : {1, 4, 6}) {
    PolicyTraining training;
    training.batch = size;
    const std::vector<float> read = read_tokens(files.model, nullptr, batch, training).log_p;
    size_t at = 0;
    for (const infer::Generation& answer : written)
      for (const infer::TokenLogprob& token : answer.logprobs)
        EXPECT_EQ(read[at++], token.logprob) << at;
    EXPECT_EQ(at, read.size());
  }
}

TEST_F(Reinforce, HasTheSameBitsForAnyThreadsAndAfterResume) {
  for (const bool by_value : {false, true}) {
    const std::string name = by_value ? "ppo" : "grpo";
    const TrainOptions once = by_value ? ppo(name) : reused(options(name));
    train({}, once);
    const std::string bits = state_bytes(once, once.steps);
    for (const int threads : {1, 2, 3}) {
      set_threads(threads);
      TrainOptions o = once;
      o.out += std::to_string(threads);
      train({}, o);
      EXPECT_EQ(state_bytes(o, o.steps), bits) << name << ", " << threads << " threads";
    }
    TrainOptions o = once;
    o.out += "_resumed";
    for (const int64_t step : {1, 2, 4, 5})
      EXPECT_TRUE(train({}, o, {}, stop_after(step)).interrupted);
    train({}, o);
    EXPECT_EQ(state_bytes(o, o.steps), bits) << name;
  }
}

TEST_F(Reinforce, AdaptersTrainAgainstTheModelWithoutThem) {
  TrainOptions o = reused(options("adapter"));
  o.lora.rank = 4;
  o.learning_rate = 1e-2;
  train({}, o);
  const std::map<int64_t, double> kl = logged(o, "kl");
  EXPECT_EQ(kl.at(1), 0);
  EXPECT_GT(kl.at(4), 0);
  EXPECT_TRUE(is_file(o.out + "/adapter_config.json"));
}

TEST_F(Reinforce, PpoLearnsValues) {
  TrainOptions o = ppo("out");
  o.steps = 40;
  o.reinforcement.prompts = 8;
  const TrainResult result = train({}, o);
  EXPECT_EQ(result.step, 40);
  const std::map<int64_t, double> loss = logged(o, "value_loss"), weight = logged(o, "kl_weight");
  EXPECT_LT(loss.at(40), loss.at(1));
  EXPECT_NE(weight.at(37), weight.at(1));
}

TEST_F(Reinforce, PromptsAreWeightedByFile) {
  TrainOptions o = options("out");
  o.validation = 0;
  o.data = {runs_ / "prompts.jsonl:0.2", runs_ / "more.jsonl:4"};
  write_file_atomically(runs_ / "more.jsonl", R"({"prompt": "7+1=", "answer": 8})"
                                              "\n");
  const TrainPlan plan = plan_training({}, o);
  EXPECT_EQ(plan.training_sequences, kSides * kSides + 1);
  EXPECT_DOUBLE_EQ(plan.epochs, 6.0 * 3 / (5 + 4));
}

TEST_F(Reinforce, ThePlanCountsKeysAndValuesOfAnswers) {
  TrainOptions o = options("out");
  const auto planned = [&](int64_t answers) {
    o.reinforcement.generations = answers;
    o.reinforcement.answer_tokens = 32;
    return plan_training({}, o).activation_bytes;
  };
  const uint64_t few = planned(64), many = planned(80);
  constexpr uint64_t kPage = 64 * 2 * 32 * sizeof(float);        // tokens, keys and values, width
  const uint64_t more = 3 * 16 * (kPage + 257 * sizeof(float));  // with logits
  EXPECT_NEAR(static_cast<double>(many - few), static_cast<double>(more), 0.2 * more);
}

TEST_F(Reinforce, TheExampleIsThePromptAsTheModelReadsIt) {
  const std::vector<ExamplePart> parts = training_example(options(""));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].trained);
  EXPECT_TRUE(parts[0].text.ends_with("0+0=")) << parts[0].text;
}

TEST_F(Reinforce, AFailedRewardSavesTheRun) {
  TrainOptions o = options("out");
  o.reinforcement.rewards.clear();
  const std::string flag = runs_ / "broken";
  o.reinforcement.reward_command = "test ! -e " + flag + " && sed 's/.*/1/'";
  train({}, o, {}, [&](const TrainProgress& progress) {
    if (progress.step == 3) write_file_atomically(flag, "");
    return progress.step < 3;
  });
  expect_error(ErrorKind::Failed, {"reward_command: ", "ended with code 1"}, [&] { train({}, o); });
  std::filesystem::remove(flag);
  bool went_on = false;
  expect_error(ErrorKind::Failed, {"reward_command: "}, [&] {
    train({}, o, {}, [&](const TrainProgress& progress) {
      if (progress.step == 5) write_file_atomically(flag, "");
      return true;
    });
  });
  std::filesystem::remove(flag);
  train({}, o, [&](const TrainPlan& plan) {
    went_on = plan.first_step == 5;
    return true;
  });
  EXPECT_TRUE(went_on);
}

TEST_F(Reinforce, RefusesWhatDoesNotFit) {
  const auto refused = [&](std::initializer_list<std::string> parts, const auto& change) {
    TrainOptions o = options("refused");
    change(o);
    expect_error(ErrorKind::InvalidArgument, parts, [&] { train({}, o); });
    EXPECT_FALSE(is_folder(o.out));
  };
  refused({"rewards: none"}, [](TrainOptions& o) { o.reinforcement.rewards.clear(); });
  refused({"generations: 1; expected at least 2"},
          [](TrainOptions& o) { o.reinforcement.generations = 1; });
  refused({"minibatches: 13; expected at most 12"},
          [](TrainOptions& o) { o.reinforcement.minibatches = 13; });
  refused({"accumulate: 2; expected 1"}, [](TrainOptions& o) { o.accumulate = 2; });
  refused({"from: not given"}, [](TrainOptions& o) { o.from.clear(); });
  refused({"has no effect in this run; expected `objective` ppo or grpo"},
          [](TrainOptions& o) { o.objective = Objective::chats; });
  refused({"length: has no effect in this run"}, [](TrainOptions& o) { o.length = 32; });
  refused({"document_mask: has no effect in this run"},
          [](TrainOptions& o) { o.document_mask = true; });
  refused({"train_on: has no effect in this run; expected conversations"},
          [](TrainOptions& o) { o.train_on = TrainOn::last; });
  refused({"validation_chats: given with ppo or grpo; expected `validation_prompts`"},
          [](TrainOptions& o) { o.validation_chats = o.data; });
  refused({"validation_prompts: ", "has a weight"},
          [](TrainOptions& o) { o.reinforcement.validation_prompts = {o.data[0] + ":2"}; });
  refused({"chat_template: the tokenizer lacks the special token <|im_start|>"},
          [](TrainOptions& o) { o.chat_template = "chatml"; });
  write_file_atomically(runs_ / "prompts.jsonl", "{\"prompt\": \"1+1=\"}\n");
  TrainOptions o = options("refused");
  expect_error(ErrorKind::BadFile, {"prompts.jsonl:1: answer is missing"}, [&] { train({}, o); });
  write_file_atomically(runs_ / "prompts.jsonl", "{\"answer\": \"1+1=\"}\n");
  expect_error(ErrorKind::BadFile, {"prompts.jsonl:1: prompt is missing"}, [&] { train({}, o); });
}

}  // namespace
}  // namespace fovea::train
