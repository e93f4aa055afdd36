#pragma once

#include "fovea/linear_probe.h"
#include "options/options.h"

namespace fovea::cli {

// Measures a linear probe: fovea eval --probe.
class ProbeRequest {
 public:
  void declare(OptionTable& table);
  int run(const Embedder& embedder, bool json);

 private:
  std::string predictions_of(const ProbeResult& result) const;

  ProbeOptions options_;
  std::string predictions_;
};

}  // namespace fovea::cli
