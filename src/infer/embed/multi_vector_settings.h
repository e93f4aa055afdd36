#pragma once

// The settings in the files of late interaction models: those of sentence-transformers, of PyLate
// up to release 3 of its format, and of the original ColBERT.

#include <optional>
#include <string>
#include <vector>

#include "embed/multi_vector_model.h"

namespace fovea::infer {

struct MultiVectorSettings {
  NamedPrompts prompts;
  std::optional<int64_t> query_length, document_length;
  std::optional<QueryExpansion> expansion;
  std::optional<std::string> expansion_token;  // unset: the mask token
  std::vector<std::string> skipped_words;
  bool skip_in_queries = false, skip_in_documents = true;
  bool mean = false, inserts = false;
  bool from_pylate = false;  // the vectors are normalised, which no module says
};

// Returns the settings of MultiVectorModel::create().
MultiVectorSettings new_multi_vector_settings(const TextFormat& format);
// `inner` is the folder of the Transformer. Throws BadFile if a setting is malformed.
MultiVectorSettings read_multi_vector_settings(const std::string& folder, const std::string& inner);
// Reads the folder of a MultiVectorMask module. Throws BadFile, and Unsupported if it keeps only
// some tokens.
void read_mask(const std::string& folder, MultiVectorSettings& settings);

}  // namespace fovea::infer
