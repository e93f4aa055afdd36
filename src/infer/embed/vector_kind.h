#pragma once

#include <string>

namespace fovea::infer {

enum class VectorKind { dense, sparse, multiple };
// Returns what a sentence-transformers directory, or one of the original ColBERT, computes; dense
// for other directories without modules.json. Throws BadFile if its files are malformed.
VectorKind vector_kind(const std::string& folder);

}  // namespace fovea::infer
