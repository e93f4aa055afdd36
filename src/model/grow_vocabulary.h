#pragma once

#include "model/transformer.h"

namespace fovea {

// Adds tokens at the end of the vocabulary. Their rows of the embedding and of the head are the
// mean of the existing rows (Hewitt 2021, "Initializing new word embeddings for pretrained language
// models", without noise). All parameters must be f32. Throws InvalidArgument if `vocabulary` is
// smaller than that of the model.
void grow_vocabulary(Transformer& model, int64_t vocabulary);

}  // namespace fovea
