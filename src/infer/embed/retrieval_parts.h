#pragma once

// Parts that SparseEmbedder and MultiVectorEmbedder share.

#include <string>

#include "embed/multi_vector_model.h"
#include "embed/sparse_model.h"

namespace fovea::infer {

struct SparseEmbedder::Parts {
  SparseModel model;
};

struct MultiVectorEmbedder::Parts {
  MultiVectorModel model;
};

// Returns the prompt that the options select; if they select none, that of the role.
std::string prompt_for(const NamedPrompts& model, TextRole role, const EmbedOptions& options);
// Throws InvalidArgument if an option is out of range, or is one of dense vectors.
void check_retrieval_options(const EmbedOptions& options);

}  // namespace fovea::infer
