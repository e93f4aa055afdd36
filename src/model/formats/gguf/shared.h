#pragma once

// The shared parts of GGUF's architectures. Each is a Family whose config is the metadata of the
// file, by keys without the prefix "ARCHITECTURE.", and whose names are GGUF's. Settings that GGUF
// expresses by the presence or contents of a tensor appear in the config under the tensor's name:
// true, or a list of its elements.

#include <optional>

#include "checkpoint/family.h"

namespace fovea::model {

// The head for labels of texts, in files that have the tensor cls.output.weight.
constexpr const char* kGgufClassifier = "classifier";

// The bias of the sum of a layer's experts, which no file has: it is 0.
constexpr const char* kGgufSumBias = "ffn_exps_sum.bias";
// A bias for the choice of experts, in files with such a tensor of any layer.
constexpr const char* kGgufSelectionBias = "exp_probs_b.bias";
// The norm of queries, in files that have it in the first layer.
constexpr const char* kGgufQueryNorm = "blk.0.attn_q_norm.weight";
// The architecture of EmbeddingGemma, and its matrices: see formats/gguf/modules.h.
constexpr const char* kGemmaEmbedding = "gemma-embedding";
constexpr const char* kGgufDense[] = {"dense_2", "dense_3"};

// Returns an architecture. All architectures share one list of names; `exceptions` take precedence.
Family gguf_architecture(const char* name, void (*config)(Config& io, Spec& spec),
                         const Names& exceptions = {});
// Returns a decoder's architecture with such a head, which reads the last token.
Family gguf_with_classifier(Family architecture);
// The names for query, key and value in one tensor.
Names gguf_fused_attention();
// The names for queries and keys whose rotated rows are neighbours.
Names gguf_rotary_pairs();

// Reads or writes the sizes that decoders and encoders have under the same keys.
void gguf_stack_sizes(Config& io, Spec& s, StackSpec& stack);
// Reads or writes whether the head shares its matrix with the embedding.
void gguf_tied(Config& io, Spec& s);
// Reads or writes the sizes and the head, for every architecture. With `other`, the file has the
// number of key-value heads of each layer; 0 = the layer has this mixer instead of attention.
void gguf_sizes(Config& io, Spec& s, std::optional<MixerKind> other = {});
// The same for an encoder, which has no head but that of labels.
void gguf_encoder_sizes(Config& io, Spec& s);
// Reads or writes the shape of LLaMA: RMSNorm, gated SiLU, rotary positions; biases only if the
// file has them.
void gguf_llama_shape(Config& io, Spec& s, std::optional<MixerKind> other = {});
// The factors of the Granite models.
void gguf_granite_factors(Config& io, Spec& s);
// Reads or writes the shape of GPT: LayerNorm, one setting of biases for all layers.
void gguf_gpt_shape(Config& io, Spec& s);
void gguf_rope(Config& io, Spec& s);
// The same for the rotated keys of latent attention.
void gguf_latent_rope(Config& io, Spec& s);
// Returns the width of a decoder's head. Throws Unsupported if the number of heads is 0.
int64_t gguf_head_width(const Spec& s);
void gguf_experts(Config& io, Spec& s);
void gguf_leading_dense_layers(Config& io, Spec& s);
// Leaves out the last layers of a file if they predict further tokens. The family sets
// predicts_further.
void gguf_leave_further_layers(Config& io, StackSpec& stack);
// Reads or writes the windows, of which the key counts the keys of both directions together. Every
// `period`-th layer is global, unless the file has a pattern.
void gguf_windows(Config& io, Spec& s, int64_t period);

// Call it last: throws Unsupported if the file has a key that was not read and is not known to be
// harmless.
void gguf_refuse_unknown(Config& io);

}  // namespace fovea::model
