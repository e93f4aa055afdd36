#pragma once

// What GGUF's architectures have in common. Each is a Family whose config is the metadata of the
// file, by keys without "ARCHITECTURE." in front, and whose names are GGUF's. What other formats
// say in their config and GGUF by the presence of a tensor, or in one, stands in the config under
// the tensor's name: true, or a list of its elements.

#include "checkpoint/family.h"

namespace fovea {

// An architecture. There is one list of names for all of them; `exceptions` go in front.
Family gguf_architecture(const char* name, void (*config)(Config& io, Spec& spec),
                         const Names& exceptions = {});
// Query, key and value in one.
Names gguf_fused_attention();

// Sizes and head, for every architecture.
void gguf_sizes(Config& io, Spec& s);
// LLaMA's way: RMSNorm, gated SiLU, no biases, rotary positions.
void gguf_llama_shape(Config& io, Spec& s);
// GPT's way: LayerNorm, one kind of bias everywhere.
void gguf_gpt_shape(Config& io, Spec& s);
void gguf_rope(Config& io, Spec& s);
// Of a decoder's head. Unsupported where there are no heads to divide the width among.
int64_t gguf_head_width(const Spec& s);
void gguf_experts(Config& io, Spec& s);

// After all else: refuses keys that no one asked for.
void gguf_refuse_unknown(Config& io);

}  // namespace fovea
