#pragma once

#include "fovea/generate.h"
#include "generate/rules.h"
#include "model/transformer.h"

namespace fovea {

// A model as generation needs it.
struct Generator {
  const Transformer& model;
  const Tokenizer* tokenizer = nullptr;  // of what is written; none: ids alone
  GenerationRules rules = {};
  DType compute = DType::f32;
  const Tokenizer* source = nullptr;   // of what an encoder reads, for translate()
  const Transformer* draft = nullptr;  // with the same vocabulary
};

// The public functions of that name, for one request by itself; its keys and values take at most
// `cache_bytes`.
std::vector<Generation> generate(const Generator& generator, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 uint64_t cache_bytes);
std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, const Spec& spec,
                                const std::string& prompt);

}  // namespace fovea
