#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fovea/train/runs.h"
#include "fovea/train/train.h"
#include "log/event_file.h"
#include "transformer/transformer.h"

namespace fovea::train {

struct Curves {
  Curve training = {}, validation = {};  // loss
  Curve bleu = {};                       // of translations, from 0 to 100
};

// Draws the curves as an SVG: loss over steps, with a thin, smoothed line for training and a line
// with dots for validation; BLEU has a separate axis on the right.
std::string chart(const Curves& curves);

// The log of a run: log.jsonl has one JSON object per step, evaluation, sample or note, and at the
// beginning and at the end of each process; loss.svg is drawn from it. Event files of TensorBoard
// and metrics.csv have the same values if the options request them.
class Record {
 public:
  // Continues the log in the output folder. Removes the entries of steps after `step`, since those
  // steps are repeated.
  Record(const TrainOptions& options, int64_t step);

  void begin(int64_t step);  // version, time and command
  void end(const TrainResult& result, const TrainPlan& plan);
  void step(const TrainProgress& progress);
  void evaluation(const TrainProgress& progress);
  void sample(const TrainProgress& progress);
  // Adds histograms of the trained weights to the event file.
  void weights(int64_t step, model::Transformer& model);
  void note(int64_t step, const std::string& text);
  void draw() const;  // writes loss.svg

 private:
  void append(const nlohmann::ordered_json& entry);

  std::string folder_;
  bool csv_;
  std::vector<std::string> command_;
  Curves curves_;
  std::optional<EventFile> events_;
};

}  // namespace fovea::train
