#include "tasks/episodes.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/threads.h"
#include "loop/rollout_batch.h"
#include "support/expect_error.h"
#include "support/run_logs.h"
#include "support/sums.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

using Replies = std::vector<EnvironmentReply>;

std::string user(const std::string& text) {
  return nlohmann::json{{{"role", "user"}, {"content", text}}}.dump();
}

// Asks "2+2=" after the first answer and rewards each 4.
Replies asks_again(const std::vector<Episode>& episodes) {
  Replies replies;
  for (const Episode& episode : episodes) {
    const auto messages = nlohmann::json::parse(episode.messages);
    EXPECT_EQ(std::ssize(messages), 2 * (episode.turn + 1));
    EXPECT_EQ(messages.back()["role"], "assistant");
    const std::string answer = messages.back()["content"];
    replies.push_back({.reward = answer == "4" ? 1.0 : 0.0, .done = episode.turn == 1});
    if (!replies.back().done) replies.back().messages = user("2+2=");
  }
  return replies;
}

class Episodes : public Sums {
 protected:
  ~Episodes() override { set_threads(threads_); }
  TrainOptions several_turns(const std::string& out, Objective objective = Objective::grpo) const {
    TrainOptions o = options(out, objective);
    o.reinforcement.rewards.clear();
    o.reinforcement.environment = asks_again;
    o.reinforcement.answer_tokens = 16;
    return o;
  }
  const int threads_ = thread_count();
};

TEST_F(Episodes, LearnFromTheRewardsOfAllTurns) {
  TrainOptions o = several_turns("out");
  o.steps = 150;
  o.reinforcement.prompts = 8;
  o.reinforcement.generations = 8;
  const TrainResult result = train({}, o);
  const std::map<int64_t, double> reward = logged(o, "reward"), turns = logged(o, "turns");
  EXPECT_GT(reward.at(150), reward.at(1) + 0.3);
  EXPECT_GT(turns.at(150), 1.9);
  EXPECT_EQ(logged(o, "reward_environment").at(150), reward.at(150));
  EXPECT_EQ(result.metrics.at(0).first, "reward");
}

TEST_F(Episodes, HaveTheSameBitsForAnyThreadsAndAfterResume) {
  for (const Objective objective : {Objective::grpo, Objective::ppo}) {
    const std::string name = objective == Objective::ppo ? "ppo" : "grpo";
    TrainOptions once = several_turns(name, objective);
    once.reinforcement.batch_epochs = 3;
    once.reinforcement.kl_weight = 0.1;
    train({}, once);
    const std::string bits = state_bytes(once, once.steps);
    TrainOptions o = once;
    o.out += "_threads";
    set_threads(3);
    train({}, o);
    EXPECT_EQ(state_bytes(o, o.steps), bits) << name;
    o.out = once.out + "_resumed";
    for (const int64_t step : {1, 2, 4})
      EXPECT_TRUE(train({}, o, {}, stop_after(step)).interrupted);
    train({}, o);
    EXPECT_EQ(state_bytes(o, o.steps), bits) << name;
  }
}

// A reply takes tokens of the episode, and no loss.
TEST_F(Episodes, RepliesAreReadAndNotTrained) {
  RolloutBatch batch;
  batch.ids = {{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3}};
  batch.prompts = {2, 1};
  batch.replies = {{3, 5}, {}};
  batch.trained = {1, 1};
  EXPECT_EQ(batch.starts(), (std::vector<int64_t>{0, 3, 5}));
  const std::vector<size_t> all = {0, 1};
  const Batch made = batch.batch_of(all, 0);
  const HostValues<int32_t> labels(made.labels);
  EXPECT_EQ((std::vector<int32_t>{labels.begin(), labels.end()}),
            (std::vector<int32_t>{-1, 3, -1, -1, 6, 7, -1, 2, 3, -1, -1, -1, -1, -1}));
  EXPECT_EQ(made.predictions, 5);
}

TEST_F(Episodes, EndWhereTheyHaveNoRoom) {
  TrainOptions o = several_turns("out");
  o.reinforcement.environment = [](const std::vector<Episode>& episodes) {
    Replies replies(episodes.size());
    for (EnvironmentReply& reply : replies)
      reply = {.reward = 1, .done = false, .messages = user("1+1=")};
    return replies;
  };
  o.steps = 1;
  train({}, o);
  // An answer has a digit and an end token, a reply four tokens: the third answer ends at 14.
  const double turns = logged(o, "turns").at(1);
  EXPECT_GT(turns, 1.5);
  EXPECT_LE(turns, 3);
  EXPECT_EQ(logged(o, "reward").at(1), turns);
}

TEST_F(Episodes, RefuseWrongReplies) {
  const auto refused = [&](const std::string& message, const EnvironmentReply& reply,
                           int more = 0) {
    TrainOptions o = several_turns("refused");
    o.reinforcement.environment = [&](const std::vector<Episode>& episodes) {
      return Replies(episodes.size() + static_cast<size_t>(more), reply);
    };
    expect_error(ErrorKind::InvalidArgument, {"environment: " + message}, [&] { train({}, o); });
    std::filesystem::remove_all(o.out);
  };
  refused("3 replies to 2 answers", {}, 1);
  refused("the reward nan", {.reward = NAN});
  refused("replied with no message", {.done = false});
  refused("replied 1; expected messages", {.done = false, .messages = "[1]"});
  refused("environment", {.done = false, .messages = "["});
}

}  // namespace
}  // namespace fovea::train
