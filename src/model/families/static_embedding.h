#pragma once

// Models of embeddings only: the vector of a text is the mean of those of its tokens, without
// special tokens. The module StaticEmbedding of sentence-transformers stores them, as a table and
// tokenizer.json.

#include <string>

#include "fovea/text/tokenizer.h"
#include "transformer/transformer.h"

namespace fovea::model {

// Returns the Spec of such a model: an encoder without layers and positions. For training, its head
// has another table of the same size.
Spec static_spec(int64_t vocabulary, int64_t width);
// Returns the Spec of a table with the width, the context and the initial weights of `spec`.
Spec static_spec(int64_t vocabulary, const Spec& spec);

// Opens the table of a module's folder as fp32. Throws BadFile if the file has no table
// "embedding.weight", or, as model2vec writes it, "embeddings".
Transformer open_static(const std::string& folder);

// Writes the table [V, C] and the tokenizer into an existing folder of a module.
void write_static(const std::string& folder, const Tensor& table, const text::Tokenizer& tokenizer);
// Writes a sentence-transformers directory, whose only module is that one, into an existing folder.
void write_static_model(const std::string& folder, const Tensor& table,
                        const text::Tokenizer& tokenizer);

}  // namespace fovea::model
