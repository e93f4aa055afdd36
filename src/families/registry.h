#pragma once

#include <string>
#include <vector>

#include "checkpoint/family.h"

namespace fovea {

extern const Family gpt2;
extern const Family llama;
extern const Family mistral;
extern const Family mixtral;
extern const Family qwen2;
extern const Family qwen3;
extern const Family qwen3_moe;
extern const Family gemma2;
extern const Family gemma3;
extern const Family phi3;
extern const Family olmo2;
extern const Family starcoder2;
extern const Family opt;
extern const Family bloom;
extern const Family gpt_neox;
extern const Family bert;
extern const Family roberta;
extern const Family distilbert;
extern const Family mpnet;
extern const Family modernbert;
extern const Family t5;
extern const Family bart;
extern const Family marian;
extern const Family vit;
extern const Family whisper;
extern const Family own;

// Every family, in the order in which saving tries them: the last can express any Spec.
const std::vector<const Family*>& families();

// The family of a config.json's model_type; Unsupported names the nearest and lists all.
const Family& family_named(const std::string& model_type, const std::string& file);

// Runs a family's table in the direction of `io`: config.json to Spec or back, with the head that
// `architectures` names. The Spec that was read is validated.
void describe(Config& io, const Family& family, Spec& spec);

// The head of this kind that the family's checkpoints have, with so many labels; else a plain one.
HeadSpec head_of(const Family& family, const Spec& spec, HeadKind kind, int64_t labels);

// Whether the family's config gives this Spec back.
bool can_express(const Family& family, const Spec& spec);

// The first family whose config gives this Spec back.
const Family& family_for(const Spec& spec);

}  // namespace fovea
