#pragma once

// What families have in common with their siblings.

#include "checkpoint/family.h"

namespace fovea {

// A decoder's language model, classifiers of the last token and of each, and the bare model.
std::vector<Architecture> decoder_architectures(const std::string& stem,
                                                const std::string& language_model);
// Their tensors beside the language model's.
Names with_decoder_heads(Names names);

// LLaMA's keys and its siblings', as far as all of them have them.
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
// Those of attention, for families that have their own kind of feed-forward or norms.
Names llama_attention_names();

// sliding_window of all layers; `absent` where the file does not say, null = none.
void window_of_all(Config& io, StackSpec& stack, int64_t absent);

Names operator+(Names a, const Names& b);

}  // namespace fovea
