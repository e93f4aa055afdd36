#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/train.h"

namespace fovea {

// What a run leaves to look at: log.jsonl, one JSON object a step or evaluation, and loss.svg,
// drawn from it as it grows.
class Record {
 public:
  // Goes on with what the folder holds, without what came after `step`: those steps are run again.
  Record(const std::string& folder, int64_t step);

  void step(const TrainProgress& progress);
  void evaluation(const TrainProgress& progress);
  void draw() const;  // loss.svg

 private:
  void append(const std::string& line);

  std::string folder_;
  std::vector<std::pair<int64_t, double>> training_, validation_;  // (step, loss)
};

// The curves as an SVG: loss over steps, training thin and smoothed, validation with dots.
std::string chart(const std::vector<std::pair<int64_t, double>>& training,
                  const std::vector<std::pair<int64_t, double>>& validation);

}  // namespace fovea
