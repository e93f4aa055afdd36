#pragma once

#include "transformer/transformer.h"

namespace fovea::model {

// Makes room for `vocabulary` tokens, of which the first `known` were there before. The rows of the
// other tokens in the embedding and in the head, some of which may exist as padding, become the
// mean of those of the known tokens (Hewitt 2021, "Initializing new word embeddings for pretrained
// language models", without noise). All parameters must be f32. Throws InvalidArgument if
// `vocabulary` is smaller than that of the model.
void grow_vocabulary(Transformer& model, int64_t vocabulary, int64_t known);

}  // namespace fovea::model
