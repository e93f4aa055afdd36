#pragma once

#include "fovea/infer/generate.h"
#include "generate/rules.h"
#include "transformer/transformer.h"

namespace fovea::infer {

// A model and its settings for generation.
struct Generator {
  const model::Transformer& model;
  const text::Tokenizer* tokenizer = nullptr;  // tokenizer of the generated text; null = ids only
  GenerationRules rules = {};
  DType compute = DType::f32, cache = DType::f32;  // dtype of products; dtype of keys and values
  const text::Tokenizer* source = nullptr;    // tokenizer of the encoder's input, for translate()
  const model::Transformer* draft = nullptr;  // draft model with the same vocabulary
  // For translate(): the token that replaces the one of a language that `source` adds.
  std::optional<int32_t> source_language = {};
};

// Like the functions in fovea/infer/generate.h, for one request. The request's keys and values take
// at most `cache_bytes`.
std::vector<Generation> generate(const Generator& generator, const ImagePrompt& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes, const PromptCache* cache = nullptr);
std::vector<Generation> generate(const Generator& generator, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes, const PromptCache* cache = nullptr);
std::vector<int32_t> prompt_ids(const text::Tokenizer& tokenizer, const model::Spec& spec,
                                const std::string& prompt,
                                text::SpecialTokens special = text::SpecialTokens::as_text);

}  // namespace fovea::infer
