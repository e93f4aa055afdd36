#pragma once

#include "fovea/study/linear_probe.h"
#include "options/options.h"

namespace fovea::cli {

// Measures a linear probe: fovea eval --probe.
class ProbeRequest {
 public:
  void declare(OptionTable& table);
  // Adds the options of intervals, which other measurements of vectors have too.
  void declare_intervals(OptionTable& table);
  int run(const infer::Embedder& embedder, bool json);
  const study::ProbeOptions& options() const { return options_; }

 private:
  std::string predictions_of(const study::ProbeResult& result) const;

  study::ProbeOptions options_;
  std::string predictions_;
};

}  // namespace fovea::cli
