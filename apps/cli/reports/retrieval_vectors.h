#pragma once

#include <cstdint>
#include <string>

#include "fovea/infer/retrieval.h"

namespace fovea::cli {

// The output of `fovea embed` for models that do not compute one dense vector for each text.
// `first` is the number of texts before these.

// Text: the index and the value of each element other than 0, as "7:1.25". JSON: one object per
// text, which also has the weights by the texts of their tokens, the largest first.
std::string sparse_text(const infer::SparseVectors& vectors);
std::string sparse_json(const infer::SparseVectors& vectors, const text::Tokenizer& tokenizer,
                        int64_t first);

// Text: one vector per line, and an empty line after each text. JSON: one object per text.
std::string multi_vector_text(const infer::MultiVectors& vectors);
std::string multi_vector_json(const infer::MultiVectors& vectors, int64_t first);

// Appends the vectors of further texts.
void append(infer::SparseVectors& all, const infer::SparseVectors& more);
void append(infer::MultiVectors& all, const infer::MultiVectors& more);

}  // namespace fovea::cli
