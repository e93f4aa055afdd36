#include "fovea/generate.h"

#include "api/parts.h"
#include "generate/engine.h"

namespace fovea {

Generation generate(const Model& model, const std::string& prompt, const GenerateOptions& options,
                    const TextSink& stream) {
  const Model::Parts& parts = model.parts();
  return generate_text(parts.transformer, model.tokenizer(), DType::f32, parts.end_ids, prompt,
                       options, stream);
}

Generation generate(const Model& model, const std::vector<int32_t>& prompt,
                    const GenerateOptions& options) {
  const Model::Parts& parts = model.parts();
  return generate_ids(parts.transformer, DType::f32, parts.end_ids, prompt, options);
}

}  // namespace fovea
