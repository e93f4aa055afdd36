#include "tasks/student_answers.h"

#include <map>
#include <set>

#include "base/threads.h"
#include "support/chats.h"
#include "support/expect_error.h"
#include "support/run_logs.h"

namespace fovea::train {
namespace {

// A teacher that knows the answers, and students that begin with the weights of the base model.
class OnPolicy : public Chats {
 protected:
  OnPolicy() {
    TrainOptions o = options("teacher");
    o.epochs = 30;
    train({}, o);
  }
  ~OnPolicy() override { set_threads(threads_); }

  TrainOptions student(const std::string& out, double share) const {
    TrainOptions o = options(out);
    o.distillation.teacher = runs_ / "teacher";
    o.distillation.on_policy = share;
    o.reinforcement.answer_tokens = 12;
    o.steps = 8;
    return o;
  }
  static std::set<int64_t> written_steps(const TrainOptions& o) {
    std::set<int64_t> steps;
    for (const auto& [step, tokens] : logged(o, "answer_tokens")) {
      EXPECT_GE(tokens, 0);
      EXPECT_LE(tokens, 12);
      steps.insert(step);
    }
    return steps;
  }

  const int threads_ = thread_count();
};

TEST_F(OnPolicy, StudentsLearnFromTheirOwnAnswers) {
  TrainOptions o = student("out", 1);
  o.steps = 120;
  train({}, o);
  const std::map<int64_t, double> losses = logged(o, "loss");
  EXPECT_LT(losses.at(120), 0.5 * losses.at(1));
  EXPECT_EQ(written_steps(o).size(), 120u);
  EXPECT_GT(logged(o, "ended").at(120), logged(o, "ended").at(1));
}

// The held-out loss is that of the labels.
TEST_F(OnPolicy, StudentsLearnTheAnswersOfTheDataBesideTheirOwn) {
  TrainOptions o = student("out", 0.5), first = student("first", 0.5);
  o.steps = 120;
  o.distillation.divergence_beta = 0.1;
  first.steps = 1;
  first.learning_rate = 0;
  EXPECT_LT(train({}, o).best_loss, 0.5 * train({}, first).best_loss);
}

TEST_F(OnPolicy, AShareOfThePassesIsWritten) {
  TrainOptions o = student("some", 0.5);
  o.steps = 40;
  train({}, o);
  const size_t some = written_steps(o).size();
  EXPECT_GT(some, 10u);
  EXPECT_LT(some, 30u);
  TrainOptions given = student("given", 0);
  given.reinforcement.answer_tokens = ReinforcementOptions().answer_tokens;
  train({}, given);
  EXPECT_TRUE(written_steps(given).empty());
  EXPECT_LT(logged(given, "loss").at(8), logged(given, "loss").at(1));
}

TEST_F(OnPolicy, HasTheSameBitsForAnyThreadsAndAfterResume) {
  TrainOptions once = student("once", 0.5);
  once.accumulate = 2;
  once.distillation.divergence_beta = 0.9;
  once.distillation.temperature = 1.5;
  train({}, once);
  const std::string bits = state_bytes(once, once.steps);
  for (const int threads : {1, 3}) {
    set_threads(threads);
    TrainOptions o = once;
    o.out += std::to_string(threads);
    train({}, o);
    EXPECT_EQ(state_bytes(o, o.steps), bits) << threads << " threads";
  }
  TrainOptions o = once;
  o.out += "_resumed";
  for (const int64_t step : {1, 4, 5}) EXPECT_TRUE(train({}, o, {}, stop_after(step)).interrupted);
  o.distillation.divergence_beta = 0.5;
  expect_error(ErrorKind::InvalidArgument, {"divergence_beta was 0.9 and is 0.5"},
               [&] { train({}, o); });
  o.distillation.divergence_beta = 0.9;
  train({}, o);
  EXPECT_EQ(state_bytes(o, o.steps), bits);
}

TEST_F(OnPolicy, AdaptersLearnToo) {
  TrainOptions o = student("adapter", 1);
  o.lora.rank = 4;
  train({}, o);
  EXPECT_LT(logged(o, "loss").at(8), logged(o, "loss").at(1));
  EXPECT_TRUE(is_file(o.out + "/adapter_config.json"));
}

// The teacher reads the answers of the data once, and those of the student are not kept.
TEST_F(OnPolicy, OutputsForWrittenAnswersAreNotKept) {
  train({}, student("written", 1));
  const std::string folder = runs_ / "written/teacher";
  uint64_t bytes = 0;
  for (const std::string& name : list_files(folder)) bytes += read_file(folder + "/" + name).size();
  EXPECT_LT(bytes, 200u);
}

TEST_F(OnPolicy, RefuseWhatDoesNotFit) {
  TrainOptions o = student("out", 0.5);
  o.distillation.alpha = 0.3;
  expect_error(ErrorKind::InvalidArgument,
               {"distillation_alpha: has no effect in this run", "without `on_policy`"},
               [&] { plan_of(o); });
  o = student("out", -0.5);
  expect_error(ErrorKind::InvalidArgument, {"on_policy: -0.5; expected 0 to 1"},
               [&] { plan_of(o); });
  o = student("out", 0);
  o.distillation.on_policy = -1;
  o.reinforcement.answer_tokens = 256;
  o.distillation.divergence_beta = 0.2;
  expect_error(ErrorKind::InvalidArgument,
               {"divergence_beta: has no effect in this run; expected `on_policy`"},
               [&] { plan_of(o); });
  o = student("out", 0.5);
  o.distillation.teacher.clear();
  expect_error(ErrorKind::InvalidArgument, {"expected `teacher`"}, [&] { plan_of(o); });
  o = student("out", 0.5);
  o.data = {runs_ / "text.txt"};
  o.chat_template.clear();
  expect_error(ErrorKind::InvalidArgument,
               {"on_policy: has no effect in this run; expected `teacher` and conversations"},
               [&] { plan_of(o); });
}

}  // namespace
}  // namespace fovea::train
