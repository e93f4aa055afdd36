#pragma once

#include <string>
#include <vector>

#include "fovea/study/circuits.h"
#include "options/options.h"

namespace fovea::cli {

// The options of `fovea trace` that print what the parts of a model add to its predictions.
class CircuitReport {
 public:
  void declare(OptionTable& table);
  // Returns whether one of these reports is requested. Throws UsageError if options do not fit
  // together, or to the options of `others`, which write values.
  bool requested(const OptionTable& table, const std::vector<const char*>& others) const;
  // Returns the report, as JSON or as text.
  std::string report(const model::Model& model, const study::InspectInput& input, bool json) const;

 private:
  bool neurons_ = false;
  std::string answers_, other_, circuit_;
  int64_t token_ = -1, steer_ = -1;
  double strength_ = 1;
};

}  // namespace fovea::cli
