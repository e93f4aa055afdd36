#pragma once

#include <string>

#include "fovea/infer/embed.h"

namespace fovea::cli {

// Return how well the similarities of the vectors of sentence pairs agree with the scores in the
// file `pairs`, as JSON or as text: by the model's pooling, or by each one.
std::string similarity_report(const infer::Embedder& embedder, const std::string& pairs,
                              const infer::EmbedOptions& options, bool json);
std::string poolings_report(const infer::Embedder& embedder, const std::string& pairs,
                            const infer::EmbedOptions& options, bool json);

}  // namespace fovea::cli
