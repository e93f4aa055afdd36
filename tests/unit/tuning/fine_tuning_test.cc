#include "tuning/fine_tuning.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "support/expect_error.h"
#include "tuning_fixture.h"

namespace fovea::tuning {
namespace {

using S = JobStatus;

class FineTuningTest : public testing::Test {
 protected:
  FineTuningTest() { folder_.set_program(folder_.good_plan(), folder_.good_training()); }

  void open() { tuning_ = std::make_unique<FineTuning>(folder_.options()); }
  void start() {
    tuning_->start(
        [this](const TunedModel& model) {
          const std::lock_guard lock(mutex_);
          served_.push_back(model.name + " of " + model.base);
          if (!serves_) throw Error(ErrorKind::OutOfMemory, "too large");
        },
        [this](const std::string& warning) {
          const std::lock_guard lock(mutex_);
          warnings_.push_back(warning);
        });
  }
  void open_and_start() {
    open();
    start();
  }
  JobRequest request() {
    JobRequest request;
    request.model = "base";
    request.training_file = tuning_->upload("chats.jsonl", "{}\n").id;
    return request;
  }
  void wait_for(const std::string& id, S status) { TuningFolder::wait_for(*tuning_, id, status); }
  std::vector<std::string> messages(const std::string& id) {
    std::vector<std::string> all;
    for (const Json& event : tuning_->events(id)) all.push_back(event["message"]);
    std::reverse(all.begin(), all.end());
    return all;
  }

  TuningFolder folder_;
  std::unique_ptr<FineTuning> tuning_;
  std::mutex mutex_;
  std::vector<std::string> served_, warnings_;
  bool serves_ = true;
};

TEST_F(FineTuningTest, AJobSucceeds) {
  open();
  JobRequest asked = request();
  asked.suffix = "mine";
  asked.epochs = 2;
  const Job job = tuning_->create(asked);
  EXPECT_EQ(job.status, S::validating_files);
  start();
  wait_for(job.id, S::succeeded);
  const Job done = *tuning_->job(job.id);
  EXPECT_EQ(done.steps, 4);
  EXPECT_EQ(done.trained_tokens, 40);
  EXPECT_GE(done.finished, done.created);
  EXPECT_EQ(served_, std::vector<std::string>{done.result_name() + " of base"});
  EXPECT_EQ(messages(job.id),
            (std::vector<std::string>{
                "Created fine-tuning job: " + job.id, "Validating the files",
                "Files validated, moving job to queued state", "Fine-tuning job started",
                "Step 1/4: training loss=4.5000", "Step 2/4: training loss=3.5000",
                "Step 2/4: validation loss=3.2500", "Step 3/4: training loss=2.5000",
                "Step 4/4: training loss=1.5000", "Step 4/4: validation loss=1.2500",
                "Checkpoint created at step 2", "Checkpoint created at step 4",
                "New fine-tuned model created", "The job has successfully completed"}));
  const auto checkpoints = tuning_->checkpoints(job.id);
  ASSERT_EQ(checkpoints.size(), 2u) << "the ends of epochs";
  EXPECT_EQ(checkpoints[0].step, 4);
  EXPECT_EQ(checkpoints[0].training_loss, 1.5);
  EXPECT_EQ(checkpoints[1].validation_loss, 3.25);
  remove_tree(folder_.options().folder + "/jobs/" + job.id + "/model/checkpoint-2");
  EXPECT_EQ(tuning_->checkpoints(job.id).size(), 1u) << "those that exist";
}

TEST_F(FineTuningTest, AWrongFileFailsTheJob) {
  open_and_start();
  const JobRequest asked = request();
  folder_.set_program("echo 'fovea: error: files/" + asked.training_file +
                          ".jsonl:2: messages[0].role is missing; expected a text' >&2; exit 2",
                      "exit 1");
  const Job job = tuning_->create(asked);
  wait_for(job.id, S::failed);
  const JobError error = *tuning_->job(job.id)->error;
  EXPECT_EQ(error.code, "invalid_training_file");
  EXPECT_EQ(error.message,
            asked.training_file + ":2: messages[0].role is missing; expected a text");
  EXPECT_EQ(messages(job.id).back(), error.message);
  EXPECT_EQ(tuning_->events(job.id)[0]["level"], "error");
}

TEST_F(FineTuningTest, FailuresOfTrainingAreReported) {
  folder_.set_program(folder_.good_plan(), "kill -9 $$");
  open_and_start();
  const Job killed = tuning_->create(request());
  wait_for(killed.id, S::failed);
  EXPECT_EQ(tuning_->job(killed.id)->error->code, "training_ended");
  folder_.set_program("echo nonsense", "");
  const Job unplanned = tuning_->create(request());
  wait_for(unplanned.id, S::failed);
  EXPECT_EQ(tuning_->job(unplanned.id)->error->code, "training_failed");
  remove_tree(folder_.program());
  const Job unstarted = tuning_->create(request());
  wait_for(unstarted.id, S::failed);
  EXPECT_EQ(tuning_->job(unstarted.id)->error->message, "the training process ended with code 127");
}

TEST_F(FineTuningTest, OneJobIsTrainedAtATime) {
  folder_.set_program(folder_.good_plan(), folder_.endless_training());
  open_and_start();
  const Job first = tuning_->create(request()), second = tuning_->create(request());
  wait_for(first.id, S::running);
  wait_for(second.id, S::queued);
  EXPECT_EQ(tuning_->jobs()[0].id, second.id) << "newest first";
  TuningFolder::wait_until([&] { return folder_.has("started"); });
  EXPECT_EQ(tuning_->cancel(first.id).status, S::cancelled);
  wait_for(second.id, S::running);
  EXPECT_EQ(tuning_->job(first.id)->status, S::cancelled);
  EXPECT_EQ(messages(first.id).back(), "Fine-tuning job cancelled");
  expect_error(ErrorKind::InvalidArgument, {"fine_tuning_job_id: the job is cancelled"},
               [&] { tuning_->cancel(first.id); });
}

TEST_F(FineTuningTest, AJobIsPausedAndResumed) {
  folder_.set_program(folder_.good_plan(), folder_.endless_training());
  open_and_start();
  const Job job = tuning_->create(request());
  TuningFolder::wait_until([&] { return folder_.has("started"); });
  expect_error(ErrorKind::InvalidArgument, {"expected a paused job"},
               [&] { tuning_->resume(job.id); });
  EXPECT_EQ(tuning_->pause(job.id).status, S::paused);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(tuning_->job(job.id)->status, S::paused);
  write_file_atomically(folder_.path("go"), "");
  EXPECT_EQ(tuning_->resume(job.id).status, S::queued);
  wait_for(job.id, S::succeeded);
}

TEST_F(FineTuningTest, ARunningJobContinuesAfterARestart) {
  folder_.set_program(folder_.good_plan(), folder_.endless_training());
  open_and_start();
  const Job job = tuning_->create(request());
  TuningFolder::wait_until([&] { return folder_.has("started"); });
  expect_error(ErrorKind::Failed, {"jobs folder"}, [&] { FineTuning other(folder_.options()); });
  tuning_->stop(std::chrono::seconds(20));
  tuning_.reset();
  write_file_atomically(folder_.path("go"), "");
  open();
  EXPECT_EQ(tuning_->job(job.id)->status, S::queued);
  EXPECT_EQ(tuning_->events(job.id)[0]["level"], "warn");
  start();
  wait_for(job.id, S::succeeded);
  tuning_.reset();
  // Results are served again.
  served_.clear();
  open_and_start();
  EXPECT_EQ(served_, std::vector<std::string>{job.result_name() + " of base"});
}

TEST_F(FineTuningTest, JobsOfAModelThatIsNotServedFail) {
  open();
  const Job job = tuning_->create(request());
  tuning_.reset();
  RunnerOptions options = folder_.options();
  options.bases[0].name = "other";
  tuning_ = std::make_unique<FineTuning>(options);
  EXPECT_EQ(tuning_->job(job.id)->error->code, "model_not_served");
}

// The child must not outlive the server, even if that is killed: it ends with the server's thread.
TEST_F(FineTuningTest, AStoppedServerLeavesNoProcess) {
  folder_.set_program(folder_.good_plan(), "trap '' TERM\necho $$ > " + folder_.path("pid") +
                                               "\n: > " + folder_.path("started") +
                                               "\nwhile :; do sleep 0.02; done");
  open_and_start();
  tuning_->create(request());
  TuningFolder::wait_until([&] { return folder_.has("started"); });
  const pid_t child = std::stoi(read_file(folder_.path("pid")));
  EXPECT_EQ(::kill(child, 0), 0);
  tuning_->stop(std::chrono::seconds(0));
  EXPECT_NE(::kill(child, 0), 0);
}

TEST_F(FineTuningTest, AResultThatCannotBeServedIsAWarning) {
  serves_ = false;
  open_and_start();
  const Job job = tuning_->create(request());
  wait_for(job.id, S::succeeded);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("too large"), std::string::npos);
}

TEST_F(FineTuningTest, WrongRequestsAreRefused) {
  open();
  const JobRequest good = request();
  const auto refused = [&](const std::string& text, const auto& change) {
    JobRequest wrong = good;
    change(wrong);
    expect_error(ErrorKind::InvalidArgument, {text}, [&] { tuning_->create(wrong); });
  };
  refused("model: gpt cannot be fine-tuned here; expected base", [](auto& r) { r.model = "gpt"; });
  refused("training_file: no such file", [](auto& r) { r.training_file = "file-1"; });
  refused("validation_file: no such file", [](auto& r) { r.validation_file = "../a"; });
  refused("suffix: expected", [](auto& r) { r.suffix = "a b"; });
  refused("suffix: expected", [](auto& r) { r.suffix = "a/b"; });
  refused("suffix: expected", [](auto& r) { r.suffix = std::string(65, 'a'); });
  EXPECT_TRUE(tuning_->jobs().empty());
  for (size_t i = 0; i < FineTuning::kMostUnfinished; ++i) tuning_->create(good);
  refused("100 jobs are waiting", [](auto&) {});
}

TEST_F(FineTuningTest, TheSizeOfTheFolderIsLimited) {
  open();
  expect_error(ErrorKind::InvalidArgument, {"file: has 2097152 bytes; of 1048576 bytes"},
               [&] { tuning_->upload("large.jsonl", std::string(2 << 20, 'x')); });
  tuning_->upload("small.jsonl", std::string(1 << 19, 'x'));
  expect_error(ErrorKind::InvalidArgument, {"are used"},
               [&] { tuning_->upload("small.jsonl", std::string(1 << 19, 'x')); });
  folder_.set_program("echo '{\"steps\": 4, \"trained_parameters\": 100000}'", "exit 1");
  start();
  const Job job = tuning_->create(request());
  wait_for(job.id, S::failed);
  EXPECT_EQ(tuning_->job(job.id)->error->code, "insufficient_storage");
}

TEST_F(FineTuningTest, AFileInUseIsKept) {
  folder_.set_program(folder_.good_plan(), folder_.endless_training());
  open_and_start();
  const JobRequest asked = request();
  const Job job = tuning_->create(asked);
  expect_error(ErrorKind::InvalidArgument, {"file_id: is used by the job " + job.id},
               [&] { tuning_->remove_file(asked.training_file); });
  tuning_->cancel(job.id);
  tuning_->remove_file(asked.training_file);
  EXPECT_FALSE(tuning_->files().find(asked.training_file));
}

}  // namespace
}  // namespace fovea::tuning
