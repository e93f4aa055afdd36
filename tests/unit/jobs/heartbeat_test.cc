#include "jobs/heartbeat.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <utility>

namespace fovea::jobs {
namespace {

using namespace std::chrono_literals;

// Rank 0 of 3, whose other ranks are the test.
class Post : public Communicator {
 public:
  explicit Post(int rank) { rank_ = rank, size_ = 3; }
  void all_to_all(Parts<const float>, Parts<float>) override {}
  void all_to_all(Parts<const uint16_t>, Parts<uint16_t>) override {}
  std::unique_ptr<Transfer> begin_all_to_all(Parts<const float>, Parts<float>) override {
    return nullptr;
  }
  std::unique_ptr<Transfer> begin_all_gather(Parts<float>) override { return nullptr; }
  void all_gather(Parts<float>) override {}
  void all_gather(Parts<uint16_t>) override {}
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  void barrier() override {}
  void send(int, std::span<const uint8_t>) override {}
  std::optional<Message> receive() override { return std::nullopt; }
  std::atomic<int>* share(int) override { return nullptr; }
  void abort(int) override {}
  void send_beat(int to, const Beat& beat) override { sent.emplace_back(to, beat); }
  std::optional<Beat> receive_beat() override {
    if (arrived.empty()) return std::nullopt;
    const Beat beat = arrived.front();
    arrived.pop_front();
    return beat;
  }

  std::vector<std::pair<int, Beat>> sent;
  std::deque<Beat> arrived;
};

std::string name(int rank) { return "rank " + std::to_string(rank); }

TEST(Heartbeat, GoesBetweenRankZeroAndTheOthers) {
  for (const int rank : {0, 2}) {
    Post post(rank);
    Heartbeat heartbeat(post, name);
    EXPECT_EQ(heartbeat.pulse(), "");
    heartbeat.leave();
    ASSERT_EQ(post.sent.size(), rank == 0 ? 4u : 2u);
    EXPECT_EQ(post.sent[0].first, rank == 0 ? 1 : 0);
    EXPECT_FALSE(post.sent[0].second.leaves);
    EXPECT_TRUE(post.sent.back().second.leaves);
  }
}

TEST(Heartbeat, NamesARankWhoseStepTakesTooLong) {
  Post post(0);
  post.does(Activity::exchanging, 7);
  Heartbeat heartbeat(post, name);
  const Beat waits{
      .from = 1, .activity = Activity::exchanging, .step = 7, .seconds = 70, .allowed = 60};
  Beat computes{
      .from = 2, .activity = Activity::computing, .step = 7, .seconds = 61, .allowed = 90};
  post.arrived = {waits, computes};
  EXPECT_EQ(heartbeat.pulse(), "");  // its steps usually take so long
  computes.allowed = 60;
  post.arrived = {computes};
  EXPECT_EQ(heartbeat.pulse(),
            "rank 2: in forward and backward of step 7 for 61 s; 2 others wait for it");
}

TEST(Heartbeat, CountsTheOthersIfAllWait) {
  Post post(0);
  post.does(Activity::exchanging, 7);
  Heartbeat heartbeat(post, name);
  Beat waits{.from = 1, .activity = Activity::exchanging, .step = 7, .seconds = 61, .allowed = 60};
  post.arrived.push_back(waits);
  waits.from = 2;
  post.arrived.push_back(waits);
  EXPECT_EQ(heartbeat.pulse(),
            "rank 1: waiting for the others at step 7 for 61 s; 2 others wait for it");
}

TEST(Heartbeat, DoesNotLimitEvaluationsAndFiles) {
  Post post(0);
  post.allow(1);
  Heartbeat heartbeat(post, name);
  for (const Activity activity : {Activity::preparing, Activity::evaluating, Activity::writing}) {
    post.arrived = {{.from = 1, .activity = activity, .step = 7, .seconds = 900, .allowed = 60}};
    EXPECT_EQ(heartbeat.pulse(), "");
  }
}

TEST(Heartbeat, NamesASilentRankUnlessItHasLeft) {
  Post post(0);
  Heartbeat heartbeat(post, name, 50ms);
  post.arrived = {{.from = 1, .leaves = true},
                  {.from = 2, .activity = Activity::writing, .step = 3}};
  EXPECT_EQ(heartbeat.pulse(), "");
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(heartbeat.pulse(),
            "rank 2: no sign of life for 0 s, last writing files at step 3 for 0 s");
}

}  // namespace
}  // namespace fovea::jobs
