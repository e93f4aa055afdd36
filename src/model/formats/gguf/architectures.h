#pragma once

// The architectures of GGUF files, each a Family whose config is the metadata.

#include <string>

#include "base/gguf.h"
#include "families/registry.h"

namespace fovea::model {

extern const Family gguf_llama;
extern const Family gguf_qwen2;
extern const Family gguf_qwen3;
extern const Family gguf_qwen3_moe;
extern const Family gguf_qwen3_next;
extern const Family gguf_gpt_oss;
extern const Family gguf_deepseek2;
extern const Family gguf_glm4_moe;
extern const Family gguf_dots1;
extern const Family gguf_mamba2;
extern const Family gguf_granite_hybrid;
extern const Family gguf_lfm2;
extern const Family gguf_lfm2_moe;
extern const Family gguf_qwen3_5;
extern const Family gguf_qwen3_5_moe;
extern const Family gguf_phi3;
extern const Family gguf_olmo2;
extern const Family gguf_gemma;
extern const Family gguf_gemma2;
extern const Family gguf_gemma3;
extern const Family gguf_granite;
extern const Family gguf_arcee;
extern const Family gguf_smollm3;
extern const Family gguf_ernie4_5;
extern const Family gguf_glm4;
extern const Family gguf_exaone4;
extern const Family gguf_olmoe;
extern const Family gguf_seed_oss;
extern const Family gguf_starcoder2;
extern const Family gguf_stablelm;
extern const Family gguf_phi2;
extern const Family gguf_nemotron;
extern const Family gguf_command_r;
extern const Family gguf_cohere2;
extern const Family gguf_gpt2;
extern const Family gguf_bloom;
extern const Family gguf_gpt_neox;
extern const Family gguf_bert;
extern const Family gguf_modern_bert;
extern const Family gguf_nomic_bert;
extern const Family gguf_nomic_bert_moe;
extern const Family gguf_jina_bert_v3;
extern const Family gguf_gemma_embedding;
extern const Family gguf_t5_encoder;

// An architecture of GGUF and the family with the same models.
struct GgufPair {
  const Family* architecture;
  const Family* family;
};

// Returns the architecture that a file names. Throws BadFile or Unsupported.
const GgufPair& gguf_pair_of(const Gguf& file);

// Returns the architecture in which a model of this Spec is written: that of `family`, the family
// that the model was read from, if it can express the Spec. Throws Unsupported if none can.
const Family& gguf_architecture_for(const Spec& spec, const Family* family);

// Returns a Spec without the fields that do not affect outputs, and without a first position, as a
// file has it.
Spec gguf_spec(Spec spec);

// Returns a string of the metadata that becomes part of a config and of messages.
std::string gguf_plain_text(const Gguf& file, std::string_view key);

}  // namespace fovea::model
