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

// Draws the curves as an SVG: loss over steps, with a thin, smoothed line for training and a line
// with dots for validation; BLEU has a separate axis on the right.
std::string chart(const Curves& curves);

// The log of a run: log.jsonl has one JSON object per step, evaluation or note; loss.svg is drawn
// from it.
class Record {
 public:
  // Continues the log in the folder. Removes the entries of steps after `step`, since those steps
  // are repeated.
  Record(const std::string& folder, int64_t step);

  void step(const TrainProgress& progress);
  void evaluation(const TrainProgress& progress);
  void sample(const TrainProgress& progress);
  void note(int64_t step, const std::string& text);
  void draw() const;  // writes loss.svg

 private:
  void append(const std::string& line);

  std::string folder_;
  Curves curves_;
};

}  // namespace fovea
