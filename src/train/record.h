#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/train.h"

namespace fovea {

using Curve = std::vector<std::pair<int64_t, double>>;  // (step, value)

struct Curves {
  Curve training = {}, validation = {};  // loss
  Curve bleu = {};                       // of translations, from 0 to 100
};

// The curves as an SVG: loss over steps, training thin and smoothed, validation with dots; BLEU
// with an axis of its own on the right.
std::string chart(const Curves& curves);

// What a run leaves to look at: log.jsonl, one JSON object a step or evaluation, and loss.svg,
// drawn from it as it grows.
class Record {
 public:
  // Goes on with what the folder holds, without what came after `step`: those steps are run again.
  Record(const std::string& folder, int64_t step);

  void step(const TrainProgress& progress);
  void evaluation(const TrainProgress& progress);
  void note(int64_t step, const std::string& text);
  void draw() const;  // loss.svg

 private:
  void append(const std::string& line);

  std::string folder_;
  Curves curves_;
};

}  // namespace fovea
