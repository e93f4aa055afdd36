#pragma once

// Vectors of texts for a probe.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/study/linear_probe.h"

namespace fovea::study {

// The vectors of texts: values [texts, width].
struct ProbeVectors {
  int64_t width = 0;
  std::vector<float> values;
  int64_t cut = 0;  // number of truncated texts
};

// Returns the model's vectors or, if `layer` or `pooling` is set, the pooled hidden states of a
// layer without the modules after the pooling. `reached` receives the completed fraction on the
// caller's thread. Throws the errors of linear_probe().
ProbeVectors probe_vectors(const infer::Embedder& embedder, const std::vector<std::string>& texts,
                           std::optional<int64_t> layer, ProbePooling pooling,
                           const std::function<void(double)>& reached);

}  // namespace fovea::study
