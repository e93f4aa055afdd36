#include "tuning/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "support/expect_error.h"
#include "tuning/random_id.h"
#include "tuning/tuning_command.h"

namespace fovea::tuning {
namespace {

using S = JobStatus;

Job some_job() {
  Job job;
  job.id = random_id("ftjob-");
  job.created = 12;
  job.request.model = "base";
  job.request.training_file = "file-1";
  job.epochs = 3;
  job.batch = 4;
  job.rate_multiplier = 0.5;
  job.seed = 7;
  job.steps = 10;
  return job;
}

TEST(JobTest, StatesFollowOneAnother) {
  const std::map<S, std::vector<S>> next = {
      {S::validating_files, {S::queued, S::failed, S::cancelled}},
      {S::queued, {S::running, S::paused, S::failed, S::cancelled}},
      {S::running, {S::queued, S::paused, S::succeeded, S::failed, S::cancelled}},
      {S::paused, {S::queued, S::failed, S::cancelled}},
      {S::succeeded, {}},
      {S::failed, {}},
      {S::cancelled, {}}};
  for (const auto& [from, allowed] : next) {
    EXPECT_EQ(is_final(from), allowed.empty());
    for (const auto& [to, ignored] : next) {
      const bool expected = std::find(allowed.begin(), allowed.end(), to) != allowed.end();
      EXPECT_EQ(may_become(from, to), expected) << name_of(from) << " " << name_of(to);
    }
  }
}

TEST(JobTest, IsWrittenAndRead) {
  Job job = some_job();
  job.status = S::failed;
  job.finished = 13;
  job.request.suffix = "mine";
  job.request.epochs = 3;
  job.request.metadata = {{"a", "b"}};
  job.checkpoints = {{"ftckpt-1", 4, 12, 0.5, {}}, {"ftckpt-2", 8, 13, 0.25, 0.75}};
  job.error = {"code", "message", "training_file"};
  job.trained_tokens = 99;
  job.disk_bytes = 1000;
  job.request.method = JobMethod::reinforcement;
  job.request.compute_multiplier = 0.5;
  job.request.rewards = {{.weight = 0.5, .check = "numeric:answer"},
                         {.schema = {{"type", "object"}}},
                         {.model = "judge"}};
  job.request.grader = {{"type", "multi"}};
  const std::string text = write_job(job);
  const Job read = read_job(text, "job.json");
  EXPECT_EQ(write_job(read), text);
  EXPECT_EQ(read.checkpoints[1].validation_loss, 0.75);
  EXPECT_FALSE(read.checkpoints[0].validation_loss.has_value());
  EXPECT_FALSE(read.request.batch.has_value());
  EXPECT_EQ(read.result_name(), "ft:base:mine:" + job.id.substr(6, 12));
  for (const std::string& damaged :
       {std::string("{}"), std::string("[]"), text.substr(1),
        std::string("{\"id\": 1, \"request\": {}, \"checkpoints\": []}")})
    expect_error(ErrorKind::BadFile, {"job.json"}, [&] { read_job(damaged, "job.json"); });
}

TEST(JobTest, ArgumentsConsistOfGeneratedNamesAndNumbers) {
  Job job = some_job();
  job.request.suffix = "--out=/etc";
  job.request.metadata = {{"--from", "/etc"}};
  const BaseModel base = {"base", "/models/base", ""};
  const std::vector<std::string> plan = validation_arguments(job, base, 2);
  EXPECT_EQ(plan, (std::vector<std::string>{"train",
                                            "files/file-1.jsonl",
                                            "--objective",
                                            "chats",
                                            "--from",
                                            "/models/base",
                                            "--lora",
                                            "16",
                                            "--epochs",
                                            "3",
                                            "--learning-rate",
                                            "0.0001",
                                            "--seed",
                                            "7",
                                            "--sample-tokens",
                                            "0",
                                            "--threads",
                                            "2",
                                            "--json",
                                            "--batch",
                                            "4",
                                            "--validation",
                                            "0",
                                            "--dry-run"}));
  job.request.validation_file = "file-2";
  const BaseModel other = {"base", "/models/base", "/templates/a.jinja"};
  const std::vector<std::string> train = training_arguments(job, other, 2);
  const auto value = [&](const std::string& name) {
    const auto found = std::find(train.begin(), train.end(), name);
    return found == train.end() ? "" : *(found + 1);
  };
  EXPECT_EQ(value("--out"), "jobs/" + job.id + "/model");
  EXPECT_EQ(value("--validation-chats"), "files/file-2.jsonl");
  EXPECT_EQ(value("--chat-template"), "/templates/a.jinja");
  EXPECT_EQ(value("--evaluate-every"), "4") << "an epoch";
  EXPECT_EQ(value("--warmup"), "1");
}

TEST(JobTest, EachMethodHasItsObjective) {
  Job job = some_job();
  job.request.validation_file = "file-2";
  const BaseModel base = {"base", "/models/base", ""};
  std::vector<std::string> all;
  const auto value = [&](const std::string& name) {
    const auto found = std::find(all.begin(), all.end(), name);
    return found == all.end() ? "" : *(found + 1);
  };
  job.request.method = JobMethod::dpo;
  job.request.beta = 0.25;
  all = training_arguments(job, base, 2);
  EXPECT_EQ(value("--objective"), "dpo");
  EXPECT_EQ(value("--beta"), "0.25");
  EXPECT_EQ(value("--learning-rate"), "1e-05");
  EXPECT_EQ(value("--validation-chats"), "files/file-2.jsonl");
  job.request = some_job().request;
  job.request.validation_file = "file-2";
  job.request.method = JobMethod::reinforcement;
  job.request.compute_multiplier = 2;
  job.request.evaluation_interval = 3;
  job.request.evaluation_samples = 5;
  job.request.answer_tokens = 20;
  job.request.rewards = {{.check = "regex:$(id)"}};
  all = training_arguments(job, base, 2);
  EXPECT_EQ(value("--objective"), "grpo");
  EXPECT_EQ(value("--config"), "jobs/" + job.id + "/rewards.json");
  EXPECT_EQ(value("--prompts"), "4");
  EXPECT_EQ(value("--generations"), "16");
  EXPECT_EQ(value("--answer-tokens"), "20");
  EXPECT_EQ(value("--evaluate-every"), "3");
  EXPECT_EQ(value("--evaluation-prompts"), "5");
  EXPECT_EQ(value("--validation-prompts"), "files/file-2.jsonl");
  EXPECT_EQ(value("--beta"), "");
  for (const std::string& argument : all) EXPECT_EQ(argument.find("id)"), std::string::npos);
}

TEST(JobTest, FailuresNameNoPath) {
  const BaseModel judge = {"judge", "/models/judge", ""};
  Job job = some_job();
  job.request.validation_file = "file-2";
  const BaseModel base = {"base", "/models/base", "/templates/a.jinja"};
  const auto failure = [&](int code, const std::string& errors) {
    const JobError error = failure_of(job, {judge, base}, code, errors);
    return error.code + " | " + error.parameter + " | " + error.message;
  };
  EXPECT_EQ(failure(2, "reading\nfovea: error: files/file-1.jsonl:2: messages is missing\n"),
            "invalid_training_file | training_file | file-1:2: messages is missing");
  EXPECT_EQ(
      failure(2, "fovea: error: files/file-2.jsonl:1: a\nfovea: error: files/file-2.jsonl:3: b"),
      "invalid_validation_file | validation_file | file-2:3: b");
  EXPECT_EQ(failure(3,
                    "fovea: error: memory: training needs 20 MB, 10 are available; expected less: "
                    "a smaller --batch"),
            "insufficient_memory |  | memory: training needs 20 MB, 10 are available; expected a "
            "smaller batch_size, shorter chats or a smaller model");
  EXPECT_EQ(failure(2, "fovea: error: /models/base/config.json: /templates/a.jinja"),
            "training_failed |  | base/config.json: the server's chat template");
  EXPECT_EQ(failure(2, "fovea: error: --reward: jobs/" + job.id + "/schema-1.json: /models/judge"),
            "invalid_grader | method.reinforcement.grader | grader: schema-1.json: judge");
  EXPECT_EQ(failure(1, "Segmentation"),
            "training_failed |  | the training process ended with code 1");
  EXPECT_EQ(failure(137, "fovea: error: files/file-1.jsonl: a"),
            "training_ended |  | the training process was ended by signal 9; the machine may lack "
            "memory");
}

}  // namespace
}  // namespace fovea::tuning
