#pragma once

// What GGUF's architectures have in common. Each is a Family whose config is the metadata of the
// file, by keys without "ARCHITECTURE." in front, and whose names are GGUF's. What other formats
// say in their config and GGUF by the presence of a tensor, or in one, stands in the config under
// the tensor's name: true, or a list of its elements.

#include "checkpoint/family.h"

namespace fovea {

// One list of names for all architectures; an architecture puts the exceptions in front.
Names gguf_names();
// Query, key and value in one.
Names gguf_fused_attention();

// The language model, which is the head that these files have.
std::vector<Architecture> gguf_head();

// Sizes and head, for every architecture.
void gguf_sizes(Config& io, Spec& s);
// LLaMA's way: RMSNorm, gated SiLU, no biases, rotary positions.
void gguf_llama_shape(Config& io, Spec& s);
// GPT's way: LayerNorm, one kind of bias everywhere.
void gguf_gpt_shape(Config& io, Spec& s);
void gguf_rope(Config& io, Spec& s);
void gguf_experts(Config& io, Spec& s);

// After all else: refuses keys that no one asked for.
void gguf_refuse_unknown(Config& io);

}  // namespace fovea
