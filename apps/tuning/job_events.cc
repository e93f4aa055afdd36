#include "tuning/job_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "base/json.h"
#include "tuning/random_id.h"

namespace fovea::tuning {
namespace {

constexpr int64_t kMostStepEvents = 1000;  // of a job; of longer runs, not every step is an event

std::optional<double> number_under(const nlohmann::json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_number() ? std::optional(found->get<double>())
                                                    : std::nullopt;
}

// Adds what else a training step or an evaluation measures (docs/align.md).
void add_metrics(const nlohmann::json& entry, const char* prefix, Json& data) {
  for (const char* name : {"reward", "kl", "entropy", "clip_fraction", "answer_tokens", "accuracy",
                           "margin", "chosen_reward", "rejected_reward"})
    if (const auto value = number_under(entry, name)) data[std::string(prefix) + name] = *value;
}

}  // namespace

void append_event(const std::string& path, const char* level, const std::string& message,
                  const Json& data) {
  const Json event = {{"object", "fine_tuning.job.event"},
                      {"id", random_id("ftevent-")},
                      {"created_at", std::time(nullptr)},
                      {"level", level},
                      {"message", message},
                      {"type", data.is_null() ? "message" : "metrics"},
                      {"data", data}};
  std::ofstream(path, std::ios::app) << json_line(event) << "\n";
}

std::vector<Json> read_events(const std::string& path) {
  std::vector<Json> events;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json event = Json::parse(line, nullptr, false);
    // A killed server may leave an incomplete line.
    if (event.is_object()) events.push_back(std::move(event));
  }
  return events;
}

TrainingLog::TrainingLog(std::string log, std::string events, const Job& job)
    : log_(std::move(log)),
      events_(std::move(events)),
      steps_(job.steps),
      interval_(job.checkpoint_interval()) {
  for (const Json& event : read_events(events_)) {
    const auto data = event.find("data");
    if (data == event.end() || !data->is_object() || !data->contains("step")) continue;
    int64_t& last = data->contains("train_loss") ? last_training_ : last_validation_;
    last = std::max(last, (*data)["step"].get<int64_t>());
  }
}

void TrainingLog::read() {
  std::ifstream file(log_, std::ios::ate | std::ios::binary);
  if (!file) return;
  if (file.tellg() < read_) read_ = 0;  // a resumed run removed the steps that it repeats
  file.seekg(read_);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read_ += static_cast<std::streamoff>(line.size()) + 1;
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("step") && entry["step"].is_number_integer())
      take(entry);
  }
}

void TrainingLog::take(const nlohmann::json& entry) {
  const auto step = entry["step"].get<int64_t>();
  const bool keeps = step == steps_ || step % interval_ == 0;
  Json data = {{"step", step}, {"total_steps", steps_}};
  if (const auto loss = number_under(entry, "loss")) {
    if (keeps) losses_[step].training = loss;
    tokens_ = entry.value("tokens", tokens_);
    const int64_t every = (steps_ + kMostStepEvents - 1) / kMostStepEvents;
    if (step <= last_training_ || (step % every != 0 && !keeps)) return;
    last_training_ = step;
    data["train_loss"] = *loss;
    data["learning_rate"] = number_under(entry, "learning_rate").value_or(0);
    add_metrics(entry, "train_", data);
    append_event(events_, "info",
                 fmt::format("Step {}/{}: training loss={:.4f}", step, steps_, *loss), data);
    return;
  }
  // Answers that the model generates have rewards instead of a loss.
  const auto held_out = number_under(entry, "eval_loss"), reward = number_under(entry, "reward");
  if (!held_out && !reward) return;
  if (keeps) losses_[step].validation = held_out;
  if (step <= last_validation_) return;
  last_validation_ = step;
  if (held_out) data["full_valid_loss"] = *held_out;
  add_metrics(entry, "valid_", data);
  const std::string what = held_out ? fmt::format("validation loss={:.4f}", *held_out)
                                    : fmt::format("validation reward={:.4f}", *reward);
  append_event(events_, "info", fmt::format("Step {}/{}: {}", step, steps_, what), data);
}

TrainingLog::Losses TrainingLog::losses(int64_t step) const {
  const auto found = losses_.find(step);
  return found == losses_.end() ? Losses() : found->second;
}

}  // namespace fovea::tuning
