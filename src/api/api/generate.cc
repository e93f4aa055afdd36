#include "fovea/generate.h"

#include "base/float_mode.h"
#include "base/machine.h"
#include "generate/check_draft.h"
#include "generate/generate.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

Generator generator_of(const Model& model, const Model* draft) {
  const ModelParts& parts = parts_of(model);
  return {.model = parts.transformer,
          .tokenizer = parts.target_tokenizer ? &*parts.target_tokenizer : nullptr,
          .rules = rules_of(parts.origin, parts.end_ids),
          .cache = parts.cache,
          .draft = draft != nullptr ? &parts_of(*draft).transformer : nullptr};
}

}  // namespace

GenerateOptions generation_defaults(const Model& model, const GenerateOptions& program) {
  const FloatMode mode;
  return defaults_of(parts_of(model).origin, model.spec(), program);
}

const std::vector<int32_t>& end_ids(const Model& model) { return parts_of(model).end_ids; }

std::vector<int32_t> prompt_ids(const Model& model, const std::string& prompt,
                                SpecialTokens special) {
  const FloatMode mode;
  return prompt_ids(model.tokenizer(), model.spec(), prompt, special);
}

std::vector<Generation> generate(const Model& model, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 const Model* draft, const PromptCache* cache) {
  return generate(model, ImagePrompt{prompt}, options, stream, draft, cache);
}

std::vector<Generation> generate(const Model& model, const ImagePrompt& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 const Model* draft, const PromptCache* cache) {
  const FloatMode mode;
  if (draft != nullptr) check_draft(model, *draft);
  return generate(generator_of(model, draft), prompt, options, stream, available_memory() / 2,
                  cache);
}

std::vector<Generation> generate(const Model& model, const std::string& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 const Model* draft) {
  const FloatMode mode;
  return generate(model, prompt_ids(model, prompt), options, stream, draft);
}

}  // namespace fovea
