#pragma once

// What BERT's siblings share: an encoder with norms on the sums, learned positions, and a head with
// a layer of its own.

#include "families/shared.h"

namespace fovea {

// Sets what all of them have in common.
void bert_shape(Spec& s);
// Sizes and dropouts under BERT's keys.
void bert_sizes(Config& io, Spec& s, float epsilon);
// Learned positions that begin behind the padding token's row (RoBERTa): the table has `rows`.
void positions_behind_padding(Config& io, Spec& s, int64_t padding);

// The tensors of the stack and of the heads that have the same names everywhere.
Names bert_encoder_names(const std::string& prefix);

HeadSpec masked_language_model();
HeadSpec labels_of_first(ActivationKind activation);  // with a layer of its own
HeadSpec pooled_first();                              // the first token through a layer of its own
HeadSpec labels_of_each();
HeadSpec answer_span();

}  // namespace fovea
