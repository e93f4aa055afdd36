#pragma once

#include "fovea/generate.h"
#include "generate/rules.h"
#include "transformer/transformer.h"

namespace fovea {

// A model and its settings for generation.
struct Generator {
  const Transformer& model;
  const Tokenizer* tokenizer = nullptr;  // tokenizer of the generated text; null = ids only
  GenerationRules rules = {};
  DType compute = DType::f32, cache = DType::f32;  // dtype of products; dtype of keys and values
  const Tokenizer* source = nullptr;   // tokenizer of the encoder's input, for translate()
  const Transformer* draft = nullptr;  // draft model with the same vocabulary
};

// Like the functions in fovea/generate.h, for one request. The request's keys and values take at
// most `cache_bytes`.
std::vector<Generation> generate(const Generator& generator, const ImagePrompt& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes, const PromptCache* cache = nullptr);
std::vector<Generation> generate(const Generator& generator, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes, const PromptCache* cache = nullptr);
std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, const Spec& spec,
                                const std::string& prompt,
                                SpecialTokens special = SpecialTokens::as_text);

}  // namespace fovea
