#pragma once

// The shared parts of families like BERT: an encoder with norms after the residual sums, learned
// positions, and a head with an extra layer.

#include "families/shared.h"

namespace fovea::model {

// Sets the fields that are the same in all of these families.
void bert_shape(Spec& s);
// Reads or writes the sizes and the dropout probabilities under BERT's keys. `epsilon` is the
// default of layer_norm_eps.
void bert_sizes(Config& io, Spec& s, float epsilon);
// Reads or writes the context, with positions that start after the row of `padding` (RoBERTa).
void positions_after_padding(Config& io, Spec& s, int64_t padding);

// Returns the names of the tensors that BERT and RoBERTa share: those of the encoder and of some
// heads.
Names bert_encoder_names(const std::string& prefix);

extern const Family xlm_roberta;  // RoBERTa with a vocabulary of a hundred languages

HeadSpec masked_language_model();
HeadSpec labels_of_first(Activation activation);  // of a sequence, with an extra layer
HeadSpec pooled_first();                          // the first token, with an extra layer
HeadSpec labels_of_each();
HeadSpec answer_span();

}  // namespace fovea::model
