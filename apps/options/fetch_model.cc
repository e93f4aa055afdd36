#include "options/fetch_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "fovea/bench.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

// Returns the rate of the last few seconds.
class Rate {
 public:
  double update(uint64_t done) {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    if (first_) {
      first_ = false;
    } else if (seconds < kPause) {
      return rate_;
    } else {
      const double current = static_cast<double>(done - std::min(done, before_)) / seconds;
      rate_ = rate_ == 0 ? current : rate_ + (current - rate_) * std::min(1.0, seconds / kWindow);
    }
    last_ = now, before_ = done;
    return rate_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPause = 0.5, kWindow = 5;  // seconds
  bool first_ = true;
  Clock::time_point last_;
  uint64_t before_ = 0;
  double rate_ = 0;
};

std::string bytes_text(uint64_t bytes) { return memory(static_cast<double>(bytes)); }

bool answers_yes(const std::string& question) {
  note(question);
  std::string line;
  if (!std::getline(std::cin, line)) return false;
  return line.empty() || line[0] == 'y' || line[0] == 'Y';
}

// Returns the base model of an adapter that is only at the Hub.
std::optional<model::HubName> missing_base(const std::string& adapter) {
  std::ifstream file(adapter + "/adapter_config.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return {};
  const auto base = json.find("base_model_name_or_path");
  if (base == json.end() || !base->is_string()) return {};
  if (std::filesystem::exists(adapter + "/" + base->get<std::string>())) return {};
  return model::missing_model(base->get<std::string>());
}

// Fetches a model or a data set and returns its path, after a question unless `yes`.
std::string fetch_named(const model::HubName& name, bool yes) {
  const std::string text = model::text_of(name);
  const bool asks = isatty(STDIN_FILENO) == 1 && is_terminal(Channel::error);
  if (!yes && !asks)
    throw UsageError(fmt::format(
        "{}: is not on this disk; to fetch it from the Hugging Face Hub, expected 'fovea pull "
        "{}' before, or --yes",
        text, text));
  const model::HubSettings settings = hub_settings();
  const model::HubPlan plan = model::plan_pull(name, settings);
  note(summary_of(plan));
  if (!yes && !answers_yes("Fetch it from the Hugging Face Hub? [Y/n] "))
    throw UsageError(text + ": is not on this disk, and was not fetched");
  return fetch(plan, settings);
}

}  // namespace

model::HubSettings hub_settings() {
  model::HubSettings settings = model::hub_settings();
  settings.bandwidth = [] { return bench_machine().bandwidth; };
  return settings;
}

std::string summary_of(const model::HubPlan& plan) {
  std::string text =
      fmt::format("{}: {} in {} file{}", model::text_of(plan.name), bytes_text(plan.bytes()),
                  plan.files.size(), plan.files.size() == 1 ? "" : "s");
  const uint64_t cached = plan.bytes() - plan.missing();
  if (cached > 0) text += fmt::format(", of which {} are in the cache", bytes_text(cached));
  if (!plan.licence.empty()) text += ", licence " + plan.licence;
  if (!plan.choice.empty()) text += "\n  " + plan.choice;
  return printable(text) + "\n";
}

std::string fetch(const model::HubPlan& plan, const model::HubSettings& settings) {
  ProgressLine line;
  Rate rate;
  return model::pull(plan, settings, [&](const model::PullProgress& now) {
    if (!now.event.empty()) line.above(printable(now.event));
    const double speed = rate.update(now.done);
    std::string details = fmt::format("{} of {}", bytes_text(now.done), bytes_text(now.bytes));
    if (speed > 0)
      details += fmt::format(
          ", {}/s, {} left", memory(speed),
          duration(static_cast<double>(now.bytes - std::min(now.bytes, now.done)) / speed));
    if (now.bytes > 0)
      line.show(static_cast<double>(now.done) / static_cast<double>(now.bytes), details, details);
    return true;
  });
}

void fetch_if_missing(const model::HubName& name, bool yes) {
  const std::string text = model::text_of(name);
  if (model::find_model(text) == text) fetch_named(name, yes);
}

void fetch_models(const OptionTable& table, bool yes) {
  for (const Option& option : table.all()) {
    if (!option.model_in) continue;
    for (const std::string& value : option.given) {
      const std::string model = option.model_in(value);
      const auto name = model::missing_model(model);
      const std::string path = name ? fetch_named(*name, yes) : model::find_model(model);
      if (const auto base = missing_base(path)) fetch_named(*base, yes);
    }
  }
}

}  // namespace fovea::cli
