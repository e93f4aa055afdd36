#pragma once

// Parts that several families share.

#include <functional>
#include <initializer_list>
#include <string>

#include "checkpoint/family.h"

namespace fovea::model {

// Returns the architectures of a decoder family: a language model, classifiers of the last token
// and of each token, answers, and the bare model.
std::vector<Architecture> decoder_architectures(const std::string& stem,
                                                const std::string& language_model);
// Returns those of a family without classifiers.
std::vector<Architecture> language_models(const std::string& stem);
// Returns the architectures with a bias of the logits of the first one.
std::vector<Architecture> with_head_bias(std::vector<Architecture> architectures);
// Adds the tensors of the classifiers' heads to those of the language model. `tagger` is the name
// of the layer that labels each token.
Names with_decoder_heads(Names names, const std::string& tagger = "score");
// Adds the names of a model with a head for answers, in which some families of transformers write
// "transformer." instead of "model.".
Names with_own_prefix_of_answers(const Names& names);

// Returns the head of an encoder-decoder that labels texts, which reads the decoder's last output,
// and the names of its tensors.
HeadSpec head_of_end(int64_t labels);
Names names_of_head_of_end();
// Reads or writes pad_token_id of a classifier, whose head does not read this token at the end of a
// text: for families that have no other use of it.
void classifier_padding(Config& io, Spec& s);
// Reads or writes tie_word_embeddings of an encoder-decoder. The key is true for a classifier: its
// stacks share the embedding.
void tie_embeddings(Config& io, Spec& s);

// The defaults of keys that LLaMA and similar families share.
struct LlamaDefaults {
  float theta = 10000;
  float epsilon = 1e-6f;
  const char* epsilon_key = "rms_norm_eps";
  const char* activation_key = "hidden_act";  // null = the family reads it
  const char* activation = "silu";
  bool tied = false;
  bool rope_by_layer_type = false;
  int64_t original_context = 0;
  int64_t kv_heads = 0, head_width = 0;  // 0 = as in AttentionSpec
  int64_t ffn_width = 0;                 // 0 = the key is required
  float rotary_share = 1;
  // See Config::RopeDefaults.
  bool query_growth = false, alpha = false, mscales = false;
};
// Reads or writes the keys that LLaMA and similar families share.
void llama_sizes(Config& io, Spec& s, const LlamaDefaults& defaults);
Names llama_names();
Names olmo2_names();
// Returns the names of the biases of LLaMA's norms, in a family with LayerNorm.
Names layer_norm_biases();
// Returns the names of all tensors except those of feed-forward layers and of the layers' norms,
// for families where these differ.
Names llama_attention_names();

// Reads or writes which layers have attention, and which this mixer, by layer_types: `attention` or
// `name`. `attends` tells it by the number of a layer, if the file has no layer_types. Before
// transformers 5, linear_attention was mamba, and full_attention was attention.
void mixers_by_type(Config& io, StackSpec& stack, MixerKind mixer, const char* name,
                    const std::function<bool(int64_t layer)>& attends,
                    const char* attention = "full_attention");

// Reads or writes the sizes of Mamba-2 layers, if there are any beside those with attention.
void state_space_beside_attention(Config& io, Spec& s);
// The keys of such families that do not affect results: the sizes, if no layer has them, those of
// experts, without experts, and keys of training and of speed.
inline constexpr std::initializer_list<const char*> kStateSpaceKeys = {
    "mamba_n_heads",      "mamba_d_head",        "mamba_n_groups",      "mamba_d_state",
    "mamba_d_conv",       "mamba_expand",        "mamba_conv_bias",     "mamba_proj_bias",
    "time_step_limit",    "init_method",         "mamba_chunk_size",    "num_logits_to_keep",
    "z_loss_coefficient", "num_experts_per_tok", "router_aux_loss_coef"};
// Returns the names of a Mamba-2 layer; the prefix `layer` contains {i}.
Names state_space_names(const std::string& layer);

// The defaults of experts with the router of DeepSeek-V3.
struct GroupedExperts {
  int64_t count = 0;   // 0 = the key is required
  int64_t chosen = 8;  // 0 = the key is required
  int64_t shared = 0, dense = 0, width = 1408;
  int64_t groups = 1, groups_chosen = 1;
  bool normalise = false;
  float scale = 1;
};
// Reads or writes experts with the router of DeepSeek-V3: a sigmoid of each logit, a bias for the
// choice, groups of experts, and layers without experts at the beginning.
void grouped_experts(Config& io, StackSpec& stack, const GroupedExperts& defaults);
// Reads or writes their parts: the sizes of the experts and of the shared ones, and the router; and
// the number of layers without experts at the beginning.
void routed_expert_sizes(Config& io, ExpertsSpec& e, const GroupedExperts& defaults);
void sigmoid_router(Config& io, ExpertsSpec& e, const GroupedExperts& defaults);
void leading_dense_layers(Config& io, StackSpec& stack, int64_t absent);
Names grouped_expert_names();

// Returns the scale of the scores of latent attention, which YaRN's mscale_all_dim, the multiple,
// makes larger: (1 + 0.1 multiple log(factor))^2 / sqrt(head_width + rotary). 0 = the default
// scale, for a multiple of 0 or a factor of 1.
float latent_scale(const StackSpec& stack, float multiple);
// Returns the multiple of a stack's scale; 0 = none. Throws Unsupported if no number of 6 digits
// gives the scale.
float latent_multiple(const StackSpec& stack);

// Returns the names of the router and of the experts of a feed-forward layer, as most families call
// them, and those of the experts in memory.
Names expert_names();
Names expert_names_in_memory();

// Reads or writes sliding_window and layer_types. Without layer_types, every
// sliding_window_pattern-th layer has no window; `period` is the default of that key.
void windows_of_pattern(Config& io, StackSpec& stack, int64_t period);
// Leaves the layers without a window without positions.
void rotate_only_local(StackSpec& stack);

// Reads or writes sliding_window, which applies to all layers. `absent` is the window if the key is
// missing; null means no window.
void window_of_all(Config& io, StackSpec& stack, int64_t absent);

// The keys that GPT-2 and its relatives share.
struct Gpt2Defaults {
  int64_t context = 0;  // 0 = the key is required
  const char* activation = "gelu_new";
  float dropout = 0.1f;
  bool tied = true;
};
void gpt2_sizes(Config& io, Spec& s, const Gpt2Defaults& absent);

// What ModernBERT and its decoders share: the sizes, the rotary positions, and which layers have a
// window, unless the file lists them.
void modernbert_sizes(Config& io, Spec& s, StackSpec& stack);
void modernbert_rope(Config& io, Spec& s, StackSpec& stack);
std::vector<bool> modernbert_pattern(Config& io);

Names operator+(Names a, const Names& b);

}  // namespace fovea::model
