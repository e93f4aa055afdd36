#include "fovea/generate.h"

#include "api/parts.h"
#include "base/error.h"
#include "generate/generate.h"
#include "generate/sampler.h"
#include "nn/kv_cache.h"
#include "ops/ops.h"
#include "plan/machine.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

Generator generator_of(const Model& model) {
  const Model::Parts& parts = model.parts();
  return {parts.transformer, parts.target_tokenizer ? &*parts.target_tokenizer : nullptr,
          rules_of(parts.origin, parts.end_ids), DType::f32, parts.cache};
}

}  // namespace

GenerateOptions generation_defaults(const Model& model) {
  return defaults_of(model.parts().origin, model.spec());
}

std::vector<int32_t> prompt_ids(const Model& model, const std::string& prompt) {
  return prompt_ids(model.tokenizer(), model.spec(), prompt);
}

std::vector<Generation> generate(const Model& model, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream) {
  return generate(generator_of(model), prompt, options, stream, available_memory() / 2);
}

std::vector<Generation> generate(const Model& model, const std::string& prompt,
                                 const GenerateOptions& options, const TextSink& stream) {
  return generate(model, prompt_ids(model, prompt), options, stream);
}

std::vector<TokenLogprob> score(const Model& model, const std::vector<int32_t>& ids,
                                int64_t alternatives) {
  const Transformer& transformer = model.parts().transformer;
  const Spec& spec = transformer.spec;
  check(spec.decoder && !spec.encoder, "score: expected a model that is a decoder alone");
  check(!ids.empty(), "score: no tokens; expected at least one");
  check(std::ssize(ids) <= spec.context,
        "score: {} tokens; expected at most {}, the model's "
        "context",
        ids.size(), spec.context);
  const NoGradient off;
  std::vector<TokenLogprob> scores(1);
  constexpr int64_t kChunk = 256;  // logits of a whole text may take more memory than the model
  KvCache cache(PagePool::layout_for(*spec.decoder, model.parts().cache), 1, std::ssize(ids));
  Pass pass;
  pass.cache = &cache;
  for (int64_t begin = 0; begin + 1 < std::ssize(ids); begin += kChunk) {
    const int64_t T = std::min(kChunk, std::ssize(ids) - 1 - begin);
    const Tensor chunk = empty({1, T}, DType::i32);
    std::copy_n(ids.begin() + begin, T, chunk.data_as<int32_t>());
    const Tensor logits = transformer.logits(transformer.hidden(chunk, pass));
    for (int64_t t = 0; t < T; ++t) {
      scores.push_back(logprob_of(logits.data_as<float>() + t * spec.vocabulary, spec.vocabulary,
                                  ids[static_cast<size_t>(begin + t + 1)], alternatives));
    }
  }
  return scores;
}

}  // namespace fovea
