#pragma once

#include <string>
#include <vector>

#include "checkpoint/family.h"

namespace fovea::model {

extern const Family gpt2;
extern const Family llama;
extern const Family mistral;
extern const Family mixtral;
extern const Family qwen2;
extern const Family qwen3;
extern const Family qwen3_moe;
extern const Family lfm2;
extern const Family lfm2_moe;
extern const Family gpt_oss;
extern const Family qwen3_next;
extern const Family qwen3_5_text;
extern const Family qwen3_5_moe_text;
extern const Family mamba2;
extern const Family bamba;
extern const Family olmo_hybrid;
extern const Family gemma2;
extern const Family gemma3;
extern const Family phi3;
extern const Family olmo2;
extern const Family starcoder2;
extern const Family opt;
extern const Family bloom;
extern const Family gpt_neox;
extern const Family gemma;
extern const Family phi;
extern const Family cohere;
extern const Family cohere2;
extern const Family granite;
extern const Family granitemoe;
extern const Family granitemoeshared;
extern const Family granitemoehybrid;
extern const Family glm;
extern const Family glm4;
extern const Family glm4_moe;
extern const Family glm4_moe_lite;
extern const Family deepseek_v2;
extern const Family deepseek_v3;
extern const Family smollm3;
extern const Family olmo3;
extern const Family olmoe;
extern const Family flex_olmo;
extern const Family qwen2_moe;
extern const Family ernie4_5;
extern const Family ernie4_5_moe;
extern const Family exaone4;
extern const Family stablelm;
extern const Family falcon;
extern const Family gpt_bigcode;
extern const Family gptj;
extern const Family codegen;
extern const Family gpt_neo;
extern const Family mpt;
extern const Family seed_oss;
extern const Family arcee;
extern const Family apertus;
extern const Family bitnet;
extern const Family helium;
extern const Family nemotron;
extern const Family ministral;
extern const Family ministral3;
extern const Family hunyuan_v1_dense;
extern const Family nanochat;
extern const Family dots1;
extern const Family minimax_m2;
extern const Family phimoe;
extern const Family modernbert_decoder;
extern const Family bert;
extern const Family electra;
extern const Family roberta;
extern const Family xlm_roberta;
extern const Family camembert;
extern const Family data2vec_text;
extern const Family roberta_prelayernorm;
extern const Family albert;
extern const Family roformer;
extern const Family rembert;
extern const Family nomic_bert;
extern const Family jina_embeddings_v3;
extern const Family gte;
extern const Family alibaba_new;
extern const Family eurobert;
extern const Family distilbert;
extern const Family mpnet;
extern const Family modernbert;
extern const Family deberta;
extern const Family deberta_v2;
extern const Family t5;
extern const Family mt5;
extern const Family umt5;
extern const Family bart;
extern const Family mbart;
extern const Family m2m_100;
extern const Family pegasus;
extern const Family blenderbot;
extern const Family blenderbot_small;
extern const Family marian;
extern const Family vit;
extern const Family deit;
extern const Family dinov2;
extern const Family dinov2_with_registers;
extern const Family clip_vision_model;
extern const Family clip_text_model;
extern const Family siglip_vision_model;
extern const Family siglip_text_model;
extern const Family whisper;
extern const Family rnn;
extern const Family gru;
extern const Family lstm;
extern const Family fovea_format;

// Returns all families, in the order in which family_for() tries them. The last one can express any
// Spec.
const std::vector<const Family*>& families();

// Returns the family of a config.json's model_type. Throws Unsupported if there is none; the
// message lists all families and names the most similar one.
const Family& family_named(const std::string& model_type, const std::string& file);

// Reads or writes a config with the function of a family. `architectures` determines the head. A
// Spec that was read is validated.
void describe(Config& io, const Family& family, Spec& spec);

// Returns the head of this kind in the family's checkpoints, with `labels` labels; a plain head if
// the family has none.
HeadSpec head_of(const Family& family, const Spec& spec, HeadKind kind, int64_t labels);

// Returns whether writing and reading the family's config reproduces this Spec.
bool can_express(const Family& family, const Spec& spec);

// Returns the first family that can express this Spec.
const Family& family_for(const Spec& spec);

// Read or write the config of these families, whose weights other formats have under other names.
void whisper_config(Config& io, Spec& spec);
void marian_config(Config& io, Spec& spec);

}  // namespace fovea::model
