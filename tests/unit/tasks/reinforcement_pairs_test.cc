// Reinforcement learning of encoder-decoders: the encoder reads the prompt.

#include <gtest/gtest.h>

#include "base/threads.h"
#include "loop/generate_answers.h"
#include "loop/policy.h"
#include "open/directory.h"
#include "support/expect_error.h"
#include "support/run_logs.h"
#include "support/sums.h"

namespace fovea::train {
namespace {

struct Translator {
  const char* name;
  const char* preset;
};

// A small encoder-decoder that answers sums of two digits, mostly wrongly.
class ReinforceTranslator : public testing::TestWithParam<Translator> {
 protected:
  static constexpr int kSides = 4;  // numbers from 0

  ReinforceTranslator() {
    std::string lines, prompts;
    for (int a = 0; a < kSides; ++a) {
      for (int b = 0; b < kSides; ++b) {
        const std::string question = std::to_string(a) + "+" + std::to_string(b);
        prompts +=
            R"({"prompt": ")" + question + R"(", "answer": )" + std::to_string(a + b) + "}\n";
        for (int wrong = 0; wrong < 3; ++wrong)  // the sum, or another digit
          lines += question + "\t" + std::to_string((a + b + 3 * wrong) % 9) + "\n";
      }
    }
    write_file_atomically(runs_ / "lines.tsv", lines);
    write_file_atomically(runs_ / "prompts.jsonl", prompts);
    TrainOptions base = runs_.options("base");
    base.data.clear();
    base.pairs = {runs_ / "lines.tsv"};
    base.tokenizer = "bpe:280";
    base.validation = 0;
    base.steps = 100;
    base.batch_tokens = 256;
    base.learning_rate = 1e-2;
    model::Spec spec = test::scaled_down(
        model::preset(GetParam().preset),
        {.vocabulary = 0, .context = 32, .width = 32, .layers = 1, .heads = 2}, 64);
    spec.dropout = {};
    train(spec, base);
  }
  ~ReinforceTranslator() override { set_threads(threads_); }

  TrainOptions options(const std::string& out, Objective objective = Objective::grpo) const {
    TrainOptions o = reinforcement_options(runs_, out, objective);
    o.validation = 0.2;
    o.reinforcement.batch_epochs = 3;
    o.reinforcement.kl_weight = 0.1;
    o.reinforcement.rewards = {"regex:\\A[3-5]"};
    return o;
  }

  Runs runs_;
  const int threads_ = thread_count();
};

TEST_P(ReinforceTranslator, LearnsFromRewardsAlone) {
  TrainOptions o = options("out");
  o.steps = 40;
  o.reinforcement.prompts = o.reinforcement.generations = 8;
  o.reinforcement.batch_epochs = 1;
  o.reinforcement.kl_weight = 0;
  o.learning_rate = 1e-2;
  train({}, o);
  const std::map<int64_t, double> reward = logged(o, "reward");
  EXPECT_LT(reward.at(1), 0.7);
  EXPECT_GT(reward.at(40), reward.at(1) + 0.3);
  const model::ModelFiles files = model::open_model_files(o.out, model::Weights::mapped);
  EXPECT_TRUE(files.model.spec.encoder && files.model.spec.decoder);
}

TEST_P(ReinforceTranslator, BeginsEachBatchWithTheRatioOne) {
  for (const Objective objective : {Objective::grpo, Objective::ppo}) {
    const TrainOptions o = options(name_of(objective), objective);
    train({}, o);
    const std::map<int64_t, double> moved = logged(o, "update_kl");
    EXPECT_EQ(moved.at(1), 0);
    EXPECT_GT(moved.at(2), 0);
    EXPECT_EQ(moved.at(4), 0);
    if (objective == Objective::grpo) {
      const std::map<int64_t, double> kl = logged(o, "kl");
      EXPECT_EQ(kl.at(1), 0);
      EXPECT_GT(kl.at(4), 0);
    }
  }
}

// The encoder's output and the cached keys and values give the bits of training.
TEST_P(ReinforceTranslator, WritesWithTheProbabilitiesOfTraining) {
  const model::ModelFiles files = model::open_model_files(runs_ / "base", model::Weights::owned);
  const auto tokenizers = text::TranslationTokenizers::open(runs_ / "base");
  infer::GenerationRules rules;
  rules.start = model::special_id(files.origin, "decoder_start_token_id");
  ASSERT_TRUE(rules.start.has_value());
  std::vector<std::vector<int32_t>> prompts;
  for (const char* text : {"1+2", "3+1 and more"})
    prompts.push_back(tokenizers.source.encoding(text).ids);
  const std::vector<infer::Generation> written = generate_answers(
      files.model, tokenizers.target, rules, {{&prompts[0], 1, 12}, {&prompts[1], 2, 12}},
      {.generations = 3, .logprobs = 0});
  RolloutBatch batch;
  for (size_t i = 0; i < written.size(); ++i) {
    batch.sources.push_back(prompts[i / 3]);
    batch.ids.push_back({*rules.start});
    batch.prompts.push_back(1);
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

TEST_P(ReinforceTranslator, HasTheSameBitsForAnyThreadsAndAfterResume) {
  for (const Objective objective : {Objective::grpo, Objective::ppo}) {
    const std::string name = name_of(objective);
    const TrainOptions once = options(name, objective);
    train({}, once);
    const std::string bits = state_bytes(once, once.steps);
    TrainOptions o = once;
    set_threads(3);
    o.out += "_threads";
    train({}, o);
    EXPECT_EQ(state_bytes(o, o.steps), bits) << name;
    o.out = once.out + "_resumed";
    for (const int64_t step : {1, 2, 4, 5})
      EXPECT_TRUE(train({}, o, {}, stop_after(step)).interrupted);
    train({}, o);
    EXPECT_EQ(state_bytes(o, o.steps), bits) << name;
  }
}

TEST_P(ReinforceTranslator, RefusesConversations) {
  write_file_atomically(runs_ / "prompts.jsonl",
                        R"({"prompt": [{"role": "user", "content": "1+1"}], "answer": "2"})"
                        "\n");
  expect_error(ErrorKind::InvalidArgument,
               {"prompts.jsonl:1: has messages; expected a text, since the model is an "
                "encoder-decoder"},
               [&] { train({}, options("out")); });
  TrainOptions o = options("out");
  o.chat_template = "chatml";
  expect_error(ErrorKind::InvalidArgument,
               {"chat_template: does not suit an encoder-decoder; expected none"},
               [&] { train({}, o); });
}

INSTANTIATE_TEST_SUITE_P(Families, ReinforceTranslator,
                         testing::Values(Translator{"t5", "t5-small"},
                                         Translator{"bart", "bart-base"},
                                         Translator{"marian", "translate-tiny"}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace fovea::train
