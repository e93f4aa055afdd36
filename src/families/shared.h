#pragma once

// Shared by several families.

#include "checkpoint/family.h"

namespace fovea {

// Returns the classes of decoders: a language model, classifiers of the last token and of each
// token, and the bare model.
std::vector<Architecture> decoder_architectures(const std::string& stem,
                                                const std::string& language_model);
// Adds the tensors of the classifiers' heads to those of the language model.
Names with_decoder_heads(Names names);

// The keys that LLaMA and all families like it share.
struct LlamaDefaults {
  float theta = 10000;
  float epsilon = 1e-6f;
  const char* epsilon_key = "rms_norm_eps";
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  bool tied = false;
  bool rope_by_layer_type = false;
  int64_t original_context = 0;
};
void llama_sizes(Config& io, Spec& s, const LlamaDefaults& defaults);
Names llama_names();
// The names of attention, for families with different feed-forward layers or norms.
Names llama_attention_names();

// Reads or writes sliding_window, for all layers: `absent` if the file has no such key; null =
// none.
void window_of_all(Config& io, StackSpec& stack, int64_t absent);

Names operator+(Names a, const Names& b);

}  // namespace fovea
