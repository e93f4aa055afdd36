// Reads the progress of a training run from the files that it writes.

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "fovea/core/read_file.h"
#include "inspector/routes.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPoints = 1000;  // points per curve: more than a screen shows
constexpr size_t kLogBytes = size_t{1} << 28;

// Thins a curve while it is read from the start. Keeps at most about 1000 points. Points that were
// kept are dropped only when the log has doubled in length.
class Curve {
 public:
  void add(Json point) {
    last_ = std::move(point);
    if (count_++ % stride_ != 0) return;
    kept_.push_back(last_);
    if (kept_.size() <= kPoints) return;
    stride_ *= 2;
    for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = std::move(kept_[2 * i]);
    kept_.resize((kept_.size() + 1) / 2);
  }
  Json take() {
    if (count_ > 0 && (count_ - 1) % stride_ != 0) kept_.push_back(std::move(last_));
    return std::move(kept_);
  }

 private:
  std::vector<Json> kept_;
  Json last_;
  size_t count_ = 0, stride_ = 1;
};

Json number_in(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_number() ? *found : Json();
}

// Measurements of preferences and reinforcement (docs/align.md).
constexpr const char* kMeasured[] = {
    "reward",     "kl",     "entropy",  "clip_fraction", "answer_tokens",  "ended",
    "value_loss", "margin", "accuracy", "chosen_reward", "rejected_reward"};

struct Log {
  Curve steps, evaluations;
  std::map<std::string, Curve> metrics;
  Json samples = Json::array();

  // The log may be written concurrently, so its last line may be incomplete.
  void add_line(std::string_view line) {
    Json entry;
    try {
      entry = parse_ordered_json(line, "log.jsonl");
    } catch (const JsonFault&) {
      return;
    }
    if (!entry.is_object() || !entry.contains("step")) return;
    const Json step = number_in(entry, "step");
    const bool trained = entry.contains("loss");
    if (entry.contains("sample")) return add_sample({{"step", step}, {"text", entry["sample"]}});
    if (entry.contains("eval_loss")) {
      Json point = {{"step", step}};
      for (const char* key : {"eval_loss", "perplexity", "bpb", "bleu"})
        if (entry.contains(key)) point[key] = number_in(entry, key);
      evaluations.add(std::move(point));
    } else if (trained) {
      steps.add({step, number_in(entry, "loss"), number_in(entry, "grad_norm"),
                 number_in(entry, "learning_rate"), number_in(entry, "tokens_per_sec")});
    }
    for (const char* name : kMeasured)
      if (const Json value = number_in(entry, name); !value.is_null())
        metrics[std::string(trained ? "" : "held_out_") + name].add({step, value});
  }

 private:
  void add_sample(Json sample) {
    if (samples.size() == 2) samples.erase(1);
    samples.push_back(std::move(sample));
  }
};

}  // namespace

std::string training_log(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "log.jsonl";
  Log log;
  const std::string text = std::filesystem::exists(path) ? read_file(path, kLogBytes) : "";
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    log.add_line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  Json metrics = Json::object();
  for (auto& [name, curve] : log.metrics) metrics[name] = curve.take();
  return json_line(Json({{"steps", log.steps.take()},
                         {"evaluations", log.evaluations.take()},
                         {"metrics", metrics},
                         {"samples", log.samples}}));
}

}  // namespace fovea::inspector
