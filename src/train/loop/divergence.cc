#include "loop/divergence.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"

namespace fovea::train {
namespace {

constexpr int64_t kWindow = 20;  // losses of a mean
constexpr double kWarns = 0.1, kStops = 0.3;
constexpr int64_t kWarnSteps = 50, kStopSteps = 100;
constexpr double kLeastLoss = 0.5;

constexpr size_t kBefore = 10;  // values that a reward is compared with
// A reward of a preference is beta log(p / p of the reference); 2 is a factor of e^20 at beta 0.1.
constexpr double kMarginJump = 2, kDeviations = 4;
constexpr double kMostDivergence = 1, kMostUpdate = 0.5;  // nats per token
constexpr int64_t kQuiet = 50;

}  // namespace

void DivergenceGuard::First::add(double x) {
  if (complete()) return;
  sum += x;
  ++count;
}

bool DivergenceGuard::First::complete() const { return count >= kWindow; }

DivergenceGuard::Verdict DivergenceGuard::see(int64_t step, double loss) {
  if (!std::isfinite(loss)) return Verdict::none;
  of_run_.add(loss);
  if (step > warmup_) after_warmup_.add(loss);
  recent_.push_back(loss);
  if (std::ssize(recent_) > kWindow) recent_.erase(recent_.begin());
  if (!of_run_.complete() || !after_warmup_.complete()) return Verdict::none;
  mean_ = 0;
  for (const double x : recent_) mean_ += x / static_cast<double>(kWindow);
  base_ = std::min(of_run_.mean(), after_warmup_.mean());
  const auto exceeds = [&](double part) {
    return mean_ > base_ + part * std::max(base_, kLeastLoss);
  };
  warn_steps_ = exceeds(kWarns) ? warn_steps_ + 1 : 0;
  stop_steps_ = exceeds(kStops) ? stop_steps_ + 1 : 0;
  if (stop_steps_ >= kStopSteps) return Verdict::stops;
  return warn_steps_ == kWarnSteps ? Verdict::warns : Verdict::none;
}

std::string DivergenceGuard::text() const {
  const bool stops = stop_steps_ >= kStopSteps;
  return fmt::format(
      "the mean loss of {} steps, {:.4g}, has been {:.0f}% above that of the first {}, {:.4g}, for "
      "{} steps",
      kWindow, mean_, 100 * (stops ? kStops : kWarns), kWindow, base_,
      stops ? stop_steps_ : warn_steps_);
}

nlohmann::json DivergenceGuard::state() const {
  const auto json = [](const First& first) { return nlohmann::json{first.sum, first.count}; };
  return {{"first", json(of_run_)},
          {"after_warmup", json(after_warmup_)},
          {"recent", recent_},
          {"above", {warn_steps_, stop_steps_}}};
}

void DivergenceGuard::restore(const nlohmann::json& state) {
  if (!state.is_object()) return;
  const auto read = [&](const char* key) {
    return First{state.at(key).at(0).get<double>(), state.at(key).at(1).get<int64_t>()};
  };
  of_run_ = read("first");
  after_warmup_ = read("after_warmup");
  recent_ = state.at("recent").get<std::vector<double>>();
  warn_steps_ = state.at("above").at(0).get<int64_t>();
  stop_steps_ = state.at("above").at(1).get<int64_t>();
}

// Returns a warning if the value is far from the mean of the values before it.
std::string RewardWatch::jump(const std::string& name, double value) {
  std::vector<double>& before = before_[name];
  const auto count = static_cast<double>(before.size());
  double mean = 0, squares = 0;
  for (const double x : before) mean += x / count;
  for (const double x : before) squares += (x - mean) * (x - mean) / count;
  const double deviations = kDeviations * std::sqrt(squares);
  const bool margin = name == "margin";
  const bool jumps =
      margin ? !before.empty() && std::abs(value - mean) > std::max(kMarginJump, deviations)
             : before.size() == kBefore && deviations > 0 && std::abs(value - mean) > deviations;
  before.push_back(value);
  if (before.size() > kBefore) before.erase(before.begin());
  if (!jumps) return "";
  return fmt::format("the {} jumps from {:.4g} to {:.4g}", margin ? "margin of the rewards" : name,
                     mean, value);
}

std::string RewardWatch::see(const infer::MetricValues& metrics) {
  std::string found;
  for (const auto& [name, value] : metrics) {
    if (!std::isfinite(value)) continue;
    std::string text;
    if (name == "margin" || name == "reward") text = jump(name, value);
    if (name == "kl" && value > kMostDivergence)
      text = fmt::format("the divergence from the initial model is {:.4g} per token", value);
    if (name == "update_kl" && value > kMostUpdate)
      text = fmt::format("the divergence of one update is {:.4g} per token", value);
    if (found.empty()) found = text;
  }
  if (quiet_ > 0) {
    --quiet_;
    return "";
  }
  if (!found.empty()) quiet_ = kQuiet;
  return found;
}

nlohmann::json RewardWatch::state() const { return {{"before", before_}, {"quiet", quiet_}}; }

void RewardWatch::restore(const nlohmann::json& state) {
  if (!state.is_object()) return;
  before_ = state.value("before", before_);
  quiet_ = state.value("quiet", quiet_);
}

std::string repeated_piece(const std::string& text) {
  constexpr size_t kLeastBytes = 40, kTimes = 4, kLeastWords = 20;
  const size_t size = text.size();
  if (size < kLeastBytes) return "";
  for (size_t period = 1; period <= size / kTimes; ++period) {
    const size_t tail = std::max(kTimes * period, size / 2);
    const bool repeats = std::equal(text.end() - static_cast<std::ptrdiff_t>(tail - period),
                                    text.end(), text.end() - static_cast<std::ptrdiff_t>(tail));
    if (repeats) return text.substr(size - period);
  }
  std::map<std::string, size_t> counts;
  std::istringstream in(text);
  size_t words = 0;
  for (std::string word; in >> word; ++words) ++counts[word];
  for (const auto& [word, count] : counts)
    if (words >= kLeastWords && 2 * count > words) return word;
  return "";
}

}  // namespace fovea::train
