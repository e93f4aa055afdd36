#include "tuning/tuning_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/json.h"
#include "fovea/train/train.h"
#include "tuning/job_store.h"

namespace fovea::tuning {
namespace {

constexpr int64_t kRank = 16, kMostWarmup = 100;
constexpr int64_t kAnswers = 8;  // to a prompt, at the multiplier 1
constexpr int64_t kAnswerTokens = 256, kAnswersAtOnce = 16;

struct MethodObjective {
  const char* name;
  train::Objective objective;
};
MethodObjective objective_of(JobMethod method) {
  switch (method) {
    case JobMethod::dpo: return {"dpo", train::Objective::dpo};
    case JobMethod::reinforcement: return {"grpo", train::Objective::grpo};
    case JobMethod::supervised: break;
  }
  return {"chats", train::Objective::chats};
}

using Add = std::function<void(const char* name, const std::string& value)>;

void add_reinforcement(const Job& job, const Add& add) {
  const JobRequest& request = job.request;
  const double answers =
      std::round(static_cast<double>(kAnswers) * request.compute_multiplier.value_or(1));
  add("--config", JobStore::relative(job, kRewards));
  add("--prompts", fmt::to_string(job.batch));
  add("--generations", fmt::to_string(std::max<int64_t>(2, std::llround(answers))));
  add("--answer-tokens", fmt::to_string(request.answer_tokens.value_or(kAnswerTokens)));
  add("--batch", fmt::to_string(kAnswersAtOnce));
  if (request.evaluation_samples)
    add("--evaluation-prompts", fmt::to_string(*request.evaluation_samples));
}

std::vector<std::string> common_arguments(const Job& job, const BaseModel& base, int threads) {
  const JobRequest& request = job.request;
  const bool writes = request.method == JobMethod::reinforcement;
  const auto [objective_name, objective] = objective_of(request.method);
  const double rate = train::recommended_rate(objective, true) * job.rate_multiplier;
  std::vector<std::string> all = {"train",           path_of_file(request.training_file),
                                  "--objective",     objective_name,
                                  "--from",          base.path,
                                  "--lora",          fmt::to_string(kRank),
                                  "--epochs",        fmt::to_string(job.epochs),
                                  "--learning-rate", fmt::to_string(rate),
                                  "--seed",          fmt::to_string(job.seed),
                                  "--sample-tokens", "0",
                                  "--threads",       fmt::to_string(threads),
                                  "--json"};
  const auto add = [&](const char* name, const std::string& value) {
    all.insert(all.end(), {name, value});
  };
  if (writes) {
    add_reinforcement(job, add);
  } else {
    add("--batch", fmt::to_string(job.batch));
  }
  if (request.beta) add("--beta", fmt::to_string(*request.beta));
  if (request.validation_file.empty()) {
    add("--validation", "0");
  } else {
    add(writes ? "--validation-prompts" : "--validation-chats",
        path_of_file(request.validation_file));
  }
  if (!base.chat_template.empty()) add("--chat-template", base.chat_template);
  return all;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Returns the message of the last line "fovea: error: MESSAGE"; empty without such a line.
std::string last_error(const std::string& errors) {
  const std::string mark = "fovea: error: ";
  const size_t at = errors.rfind(mark);
  if (at == std::string::npos) return {};
  const size_t begin = at + mark.size();
  return errors.substr(begin, errors.find('\n', begin) - begin);
}

}  // namespace

std::string path_of_file(const std::string& id) { return "files/" + id + ".jsonl"; }

std::string schema_name(size_t n) { return fmt::format("schema-{}.json", n + 1); }

std::string rewards_config(const Job& job, const std::vector<BaseModel>& judges) {
  Json rewards = Json::array();
  const std::vector<JobReward>& given = job.request.rewards;
  for (size_t n = 0; n < given.size(); ++n) {
    std::string reward = given[n].check;
    if (!given[n].schema.is_null()) reward = "schema:" + JobStore::relative(job, schema_name(n));
    for (const BaseModel& judge : judges)
      if (judge.name == given[n].model) reward = "model:" + judge.path;
    rewards.push_back(fmt::format("{}*{}", given[n].weight, reward));
  }
  Json config;
  config["train"]["reward"] = rewards;
  return pretty(config);
}

std::vector<std::string> validation_arguments(const Job& job, const BaseModel& base, int threads) {
  std::vector<std::string> all = common_arguments(job, base, threads);
  all.emplace_back("--dry-run");
  return all;
}

std::vector<std::string> training_arguments(const Job& job, const BaseModel& base, int threads) {
  std::vector<std::string> all = common_arguments(job, base, threads);
  const std::string every = fmt::to_string(job.checkpoint_interval());
  all.insert(all.end(), {"--out", JobStore::relative(job, "model"), "--evaluate-every", every,
                         "--save-every", every, "--keep", fmt::to_string(kSnapshots), "--warmup",
                         fmt::to_string(std::min(kMostWarmup, job.steps / 10))});
  return all;
}

JobError failure_of(const Job& job, const std::vector<BaseModel>& models, int code,
                    const std::string& errors) {
  if (code >= 128) {
    return {"training_ended",
            fmt::format("the training process was ended by signal {}; the machine may lack memory",
                        code - 128),
            ""};
  }
  std::string message = last_error(errors);
  if (message.empty()) message = fmt::format("the training process ended with code {}", code);
  const std::string training = path_of_file(job.request.training_file),
                    validation = path_of_file(job.request.validation_file);
  const auto begins = [&](const std::string& path) {
    return message.compare(0, path.size(), path) == 0;
  };
  JobError error = {"training_failed", "", ""};
  if (code == 3) {  // the advice of the program names its options
    error.code = "insufficient_memory";
    message = message.substr(0, message.find("; expected")) +
              "; expected a smaller batch_size, shorter chats or a smaller model";
  }
  if (begins(training)) error = {"invalid_training_file", "", "training_file"};
  if (begins(validation)) error = {"invalid_validation_file", "", "validation_file"};
  if (begins("--reward: ")) {
    error = {"invalid_grader", "", "method.reinforcement.grader"};
    message = "grader: " + message.substr(std::string("--reward: ").size());
  }
  replace_all(message, JobStore::relative(job, ""), "");
  replace_all(message, training, job.request.training_file);
  if (!job.request.validation_file.empty())
    replace_all(message, validation, job.request.validation_file);
  for (const BaseModel& model : models) {
    if (!model.chat_template.empty())
      replace_all(message, model.chat_template, "the server's chat template");
    replace_all(message, model.path, model.name);
  }
  error.message = std::move(message);
  return error;
}

}  // namespace fovea::tuning
