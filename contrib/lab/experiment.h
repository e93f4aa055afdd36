#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/lab.h"
#include "lab/table.h"
#include "lab/text.h"

namespace fovea::lab {

// A run with what it needs.
struct Trial : LabRun {
  LabForm form = LabForm::brief;
  double effort = 1;
  const Text* text = nullptr;  // of experiments that read text

  // Returns a number of steps or repetitions, reduced by the effort.
  int64_t times(int64_t brief, int64_t full) const;
  int64_t times(int64_t both) const { return times(both, both); }
};

using Reading = LabReading;
using Readings = std::vector<Reading>;

// The grids of both forms.
struct Grid {
  std::vector<double> brief, full;
  const std::vector<double>& of(LabForm form) const {
    return form == LabForm::brief ? brief : full;
  }
};

// An experiment as data. `measure` is a pure function of the trial, apart from measured times.
struct Experiment {
  ExperimentSummary summary;
  bool greater_is_better = false;  // decides which learning rate is best
  bool logarithmic = false;        // the axis of the chart
  std::vector<std::string> arms;
  // The points of the axis with a run each; one element, 0, if a run measures at all points.
  Grid grid = {{0}, {0}};
  // The rates among which the full form chooses for each arm and point of the grid; the brief form
  // uses the first one. Empty = nothing is trained.
  std::vector<double> rates = {};
  std::function<Readings(const Trial&)> measure;
  std::function<std::vector<Conclusion>(const Table&)> conclude;
};

// All experiments, in the order of the list. Each is defined in a file of its name.
const std::vector<Experiment>& all_experiments();
// Throws InvalidArgument, with the nearest name, if it is unknown.
const Experiment& experiment_named(const std::string& name);

}  // namespace fovea::lab
