#pragma once

// The shared parts of families like BERT: an encoder with norms after the residual sums, learned
// positions, and a head with an extra layer.

#include "families/shared.h"

namespace fovea::model {

// Sets the fields that are the same in all of these families.
void bert_shape(Spec& s);
// The defaults of BERT's keys.
struct BertDefaults {
  float epsilon = 1e-12f;
  const char* activation = "gelu";
  float dropout = 0.1f, attention_dropout = 0.1f;
};
// Reads or writes the sizes and the dropout probabilities under BERT's keys.
void bert_sizes(Config& io, Spec& s, const BertDefaults& defaults = {});
// Reads or writes the width of the embeddings. The second function is for families whose files
// always have a projection of the embeddings.
void embedding_width(Config& io, Spec& s, const char* key, int64_t absent);
void projected_embedding_width(Config& io, Spec& s, const char* key, int64_t absent);
// Reads or writes the context, with positions that start after the row of `padding` (RoBERTa).
void positions_after_padding(Config& io, Spec& s, int64_t padding);

// Reads or writes moe_every_n_layers, N: the layers whose index is 1 modulo N have experts.
void layers_with_experts(Config& io, StackSpec& e);

// BERT with rotary positions instead of learned ones.
void rotary_bert_shape(Spec& s);

// Returns the names of the tensors that BERT and RoBERTa share: those of the encoder and of some
// heads.
Names bert_encoder_names(const std::string& prefix);
// Returns the names of the output layer of a masked language model. transformers stores its bias
// twice, and reads the layer's own one if the matrix is not tied.
Names masked_output_names(const std::string& stem);
// The heads of RoBERTa and similar families.
std::vector<Architecture> roberta_architectures(const std::string& stem);
Names roberta_head_names();
// The names of the attention, the norms and the embeddings that Jina's model and its relatives have
// in memory of transformers.
Names rotary_bert_in_memory(const std::string& prefix);

HeadSpec masked_language_model();
HeadSpec labels_of_first(Activation activation);  // of a sequence, with an extra layer
HeadSpec pooled_first();                          // the first token, with an extra layer
HeadSpec labels_of_each();
HeadSpec answer_span();

}  // namespace fovea::model
