#include "fovea/infer/generate.h"

#include "base/float_mode.h"
#include "base/machine.h"
#include "generate/check_draft.h"
#include "generate/generate.h"
#include "open/model_parts.h"

namespace fovea {
namespace {

infer::Generator generator_of(const model::Model& model, const model::Model* draft) {
  const model::ModelParts& parts = model::parts_of(model);
  return {.model = parts.transformer,
          .tokenizer = parts.target_tokenizer ? &*parts.target_tokenizer : nullptr,
          .rules = infer::rules_of(parts.origin, parts.end_ids),
          .cache = parts.cache,
          .draft = draft != nullptr ? &model::parts_of(*draft).transformer : nullptr};
}

}  // namespace

infer::GenerateOptions infer::generation_defaults(const model::Model& model,
                                                  const infer::GenerateOptions& program) {
  const FloatMode mode;
  return infer::defaults_of(model::parts_of(model).origin, model.spec(), program);
}

const std::vector<int32_t>& infer::end_ids(const model::Model& model) {
  return model::parts_of(model).end_ids;
}

std::vector<int32_t> infer::prompt_ids(const model::Model& model, const std::string& prompt,
                                       text::SpecialTokens special) {
  const FloatMode mode;
  return infer::prompt_ids(model.tokenizer(), model.spec(), prompt, special);
}

std::vector<infer::Generation> infer::generate(const model::Model& model,
                                               const std::vector<int32_t>& prompt,
                                               const infer::GenerateOptions& options,
                                               const infer::TextSink& stream,
                                               const model::Model* draft,
                                               const infer::PromptCache* cache) {
  return infer::generate(model, infer::ImagePrompt{prompt}, options, stream, draft, cache);
}

std::vector<infer::Generation> infer::generate(const model::Model& model,
                                               const infer::ImagePrompt& prompt,
                                               const infer::GenerateOptions& options,
                                               const infer::TextSink& stream,
                                               const model::Model* draft,
                                               const infer::PromptCache* cache) {
  const FloatMode mode;
  if (draft != nullptr) infer::check_draft(model, *draft);
  return infer::generate(generator_of(model, draft), prompt, options, stream,
                         available_memory() / 2, cache);
}

std::vector<infer::Generation> infer::generate(const model::Model& model, const std::string& prompt,
                                               const infer::GenerateOptions& options,
                                               const infer::TextSink& stream,
                                               const model::Model* draft) {
  const FloatMode mode;
  return infer::generate(model, infer::prompt_ids(model, prompt), options, stream, draft);
}

}  // namespace fovea
