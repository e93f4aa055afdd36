#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fovea/infer/metrics.h"

namespace fovea::train {

// Watches the losses of a run. After the warm-up, the mean of the last 20 losses is compared with
// that of the first 20 of the run and with that of the first 20 after the warm-up. Above the lesser
// one by 10% for 50 steps in a row: a warning; by 30% for 100 steps: the run diverges. A loss below
// 0.5 counts as 0.5 in these percentages, since small losses vary more.
class DivergenceGuard {
 public:
  explicit DivergenceGuard(int64_t warmup) : warmup_(warmup) {}

  enum class Verdict { none, warns, stops };
  // `step` counts from 1.
  Verdict see(int64_t step, double loss);
  // Tells the numbers of the last verdict: "the mean loss of the last 20 steps, 3.2, ...".
  std::string text() const;

  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  // The mean of the first numbers.
  struct First {
    double sum = 0;
    int64_t count = 0;
    void add(double x);
    bool complete() const;
    double mean() const { return sum / static_cast<double>(count); }
  };

  int64_t warmup_;
  First of_run_, after_warmup_;
  std::vector<double> recent_;
  int64_t warn_steps_ = 0, stop_steps_ = 0;  // steps in a row above the limits
  double mean_ = 0, base_ = 0;
};

// Watches the numbers of runs that learn preferences or from rewards.
class RewardWatch {
 public:
  // Returns a warning if the mean reward or the margin of the rewards jumps, or if the divergence
  // from the reference, or that of a single update, runs away; else an empty string.
  std::string see(const infer::MetricValues& metrics);

  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  std::string jump(const std::string& name, double value);

  std::map<std::string, std::vector<double>> before_;
  int64_t quiet_ = 0;  // steps before the next warning
};

// Returns what a text repeats to its end: a piece, or a word that is most of its words; empty if it
// does not repeat itself.
std::string repeated_piece(const std::string& text);

}  // namespace fovea::train
