#include "log/record.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/chrono.h>

#include "base/error.h"
#include "base/files.h"
#include "base/math.h"
#include "base/ordered_json.h"
#include "fovea/core/machine.h"
#include "tensor/host_values.h"

namespace fovea::train {

namespace {

// Parses a line. Returns null if it is not JSON, since a killed run may leave an incomplete line.
nlohmann::ordered_json entry_of(std::string_view line, const std::string& path) {
  try {
    return parse_ordered_json(line, path);
  } catch (const Error&) {
    return nullptr;
  }
}

// Returns the lines step,metric,value of an entry of the log.
std::string csv_lines(const nlohmann::ordered_json& entry) {
  std::string lines;
  for (const auto& [name, value] : entry.items())
    if (name != "step" && value.is_number())
      lines += fmt::format("{},{},{}\n", entry["step"].dump(), name, value.dump());
  return lines;
}

std::string time_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

Record::Record(const TrainOptions& options, int64_t step)
    : folder_(options.out), csv_(options.csv), command_(options.command) {
  const std::string path = folder_ + "/log.jsonl";
  std::error_code ignored;
  const bool there = std::filesystem::exists(path, ignored);
  constexpr size_t kMostBytes = size_t{1} << 40;  // effectively unlimited: the run wrote this file
  const std::string text = there ? read_file(path, kMostBytes) : "";
  std::string kept, csv = "step,metric,value\n";
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const nlohmann::ordered_json json = entry_of(line, path);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer() ||
        json["step"] > step)
      continue;
    kept.append(line) += '\n';
    if (csv_) csv += csv_lines(json);
    if (json.contains("loss") && json["loss"].is_number())
      curves_.training.emplace_back(json["step"], json["loss"]);
    if (json.contains("eval_loss") && json["eval_loss"].is_number())
      curves_.validation.emplace_back(json["step"], json["eval_loss"]);
    if (json.contains("bleu") && json["bleu"].is_number())
      curves_.bleu.emplace_back(json["step"], json["bleu"]);
  }
  write_file_atomically(path, kept);
  if (csv_) write_file_atomically(folder_ + "/metrics.csv", csv);
  if (options.tensorboard) events_.emplace(folder_ + "/tensorboard", step);
}

void Record::append(const nlohmann::ordered_json& entry) {
  std::ofstream file(folder_ + "/log.jsonl", std::ios::app);
  // An error in writing the log must not end a training run.
  file << entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  if (csv_) std::ofstream(folder_ + "/metrics.csv", std::ios::app) << csv_lines(entry);
}

void Record::begin(int64_t step) {
  nlohmann::ordered_json json;
  json["step"] = step;
  json["version"] = version();
  json["time"] = time_now();
  if (!command_.empty()) {
    std::error_code ignored;
    json["command"] = command_;
    json["folder"] = std::filesystem::current_path(ignored).string();
  }
  append(json);
}

void Record::end(const TrainResult& result, const TrainPlan& plan) {
  nlohmann::ordered_json json;
  json["step"] = result.step;
  json["time"] = time_now();
  json["run_seconds"] = result.seconds;
  json["planned_seconds"] = plan.seconds;
  json["run_tokens_per_sec"] = std::round(result.tokens_per_second);
  json["planned_tokens_per_sec"] = std::round(plan.tokens_per_second);
  json["peak_mem_bytes"] = result.peak_bytes;
  json["planned_mem_bytes"] = plan.total_bytes;
  append(json);
}

void Record::step(const TrainProgress& p) {
  nlohmann::ordered_json json;
  json["step"] = p.step;
  json["epoch"] = std::round(p.epoch * 1e4) / 1e4;
  json["loss"] = p.loss;
  json["grad_norm"] = p.gradient_norm;
  json["learning_rate"] = p.learning_rate;
  json["tokens"] = p.tokens;
  json["tokens_per_sec"] = std::round(p.tokens_per_second);
  json["step_ms"] = std::round(p.step_seconds * 1e5) / 100;
  json["peak_mem_bytes"] = p.peak_bytes;
  json["seconds"] = std::round(p.seconds * 1e3) / 1e3;
  for (const auto& [name, value] : p.step_metrics) json[name] = value;
  append(json);
  if (events_) {
    events_->scalars(p.step, {{"train/loss", p.loss},
                              {"train/grad_norm", p.gradient_norm},
                              {"train/learning_rate", p.learning_rate},
                              {"train/tokens_per_sec", p.tokens_per_second}});
    events_->scalars(p.step, p.step_metrics, "train/");
  }
  if (std::isfinite(p.loss)) curves_.training.emplace_back(p.step, p.loss);
}

void Record::evaluation(const TrainProgress& p) {
  nlohmann::ordered_json json;
  json["step"] = p.step;
  if (p.validation_loss) {
    json["eval_loss"] = *p.validation_loss;
    json["perplexity"] = math::exp(*p.validation_loss);
    json["bpb"] = p.bits_per_byte;
  }
  for (const auto& [name, value] : p.metrics) {
    json[name] = value;
    if (name == "bleu") curves_.bleu.emplace_back(p.step, value);
  }
  if (events_) {
    if (p.validation_loss) events_->scalars(p.step, {{"eval/loss", *p.validation_loss}});
    events_->scalars(p.step, p.metrics, "eval/");
  }
  constexpr size_t kMostLabels = 50;  // more would make the lines of the log very long
  if (p.labels && p.labels->labels.size() <= kMostLabels)
    json.update(nlohmann::ordered_json::parse(infer::label_json(*p.labels)));
  append(json);
  if (p.validation_loss && std::isfinite(*p.validation_loss))
    curves_.validation.emplace_back(p.step, *p.validation_loss);
}

void Record::sample(const TrainProgress& p) {
  if (p.sample.empty()) return;
  nlohmann::ordered_json json;
  json["step"] = p.step;
  json["sample"] = p.sample;
  if (events_) events_->text(p.step, "sample", p.sample);
  append(json);
}

void Record::weights(int64_t step, model::Transformer& model) {
  if (!events_) return;
  model.each([&](const std::string& name, model::Parameter& p) {
    if (!p.trainable || !p.value) return;
    const HostValues<float> values(p.value);
    events_->histogram(step, "weights/" + name, values.all().data(), values.size());
  });
}

void Record::note(int64_t step, const std::string& text) {
  nlohmann::ordered_json json;
  json["step"] = step;
  json["note"] = text;
  append(json);
}

void Record::draw() const {
  if (curves_.training.empty()) return;
  try {
    write_file_atomically(folder_ + "/loss.svg", chart(curves_));
  } catch (const Error&) {  // a picture that cannot be written must not end a training run
  }
}

}  // namespace fovea::train
