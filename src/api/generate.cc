#include "fovea/generate.h"

#include <algorithm>
#include <limits>

#include "api/model_parts.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/machine.h"
#include "base/math.h"
#include "cache/kv_cache.h"
#include "generate/generate.h"
#include "generate/sampler.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

Generator generator_of(const Model& model, const Model* draft) {
  const Model::Parts& parts = model.parts();
  return {.model = parts.transformer,
          .tokenizer = parts.target_tokenizer ? &*parts.target_tokenizer : nullptr,
          .rules = rules_of(parts.origin, parts.end_ids),
          .cache = parts.cache,
          .draft = draft != nullptr ? &draft->parts().transformer : nullptr};
}

void check_same(const Tokenizer& model, const Tokenizer& draft) {
  check_field(model.size() == draft.size(), "draft",
              "the vocabulary has {} tokens; expected the model's vocabulary, which has {}",
              draft.size(), model.size());
  for (int32_t id = 0; id < model.size(); ++id) {
    check_field(model.text_of(id) == draft.text_of(id), "draft",
                "token {} is \"{}\"; expected the model's vocabulary, where it is \"{}\"", id,
                draft.text_of(id), model.text_of(id));
  }
}

}  // namespace

void check_draft(const Model& model, const Model& draft) {
  const Spec &mine = model.spec(), &its = draft.spec();
  check_field(its.decoder && its.head.kind == HeadKind::language_model, "draft",
              "the model generates no text; expected a decoder with a language-model head");
  check_field(mine.encoder.has_value() == its.encoder.has_value(), "draft",
              "the model is {}; expected {}, like the model that it drafts for",
              its.encoder ? "an encoder-decoder" : "a decoder-only model",
              mine.encoder ? "an encoder-decoder" : "a decoder-only model");
  if (!model.has_tokenizer() || !draft.has_tokenizer()) {
    const bool same =
        mine.vocabulary == its.vocabulary && mine.source_vocabulary == its.source_vocabulary;
    check_field(same, "draft",
                "the vocabulary has {} tokens; expected the model's vocabulary, which has {}",
                its.vocabulary, mine.vocabulary);
    return;
  }
  check_same(*model.parts().tokenizer, *draft.parts().tokenizer);
  check_same(*model.parts().target_tokenizer, *draft.parts().target_tokenizer);
}

GenerateOptions generation_defaults(const Model& model, const GenerateOptions& program) {
  const FloatMode mode;
  return defaults_of(model.parts().origin, model.spec(), program);
}

const std::vector<int32_t>& end_ids(const Model& model) { return model.parts().end_ids; }

std::vector<int32_t> prompt_ids(const Model& model, const std::string& prompt) {
  const FloatMode mode;
  return prompt_ids(model.tokenizer(), model.spec(), prompt);
}

std::vector<Generation> generate(const Model& model, const std::vector<int32_t>& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 const Model* draft) {
  const FloatMode mode;
  if (draft != nullptr) check_draft(model, *draft);
  return generate(generator_of(model, draft), prompt, options, stream, available_memory() / 2);
}

std::vector<Generation> generate(const Model& model, const std::string& prompt,
                                 const GenerateOptions& options, const TextSink& stream,
                                 const Model* draft) {
  const FloatMode mode;
  return generate(model, prompt_ids(model, prompt), options, stream, draft);
}

std::vector<TokenLogprob> score(const Model& model, const std::vector<int32_t>& ids,
                                int64_t alternatives) {
  const FloatMode mode;
  const Transformer& transformer = model.parts().transformer;
  const Spec& spec = checked_writer(transformer.spec);
  check(!spec.encoder, "score: the model has an encoder; expected a decoder-only model");
  check(!ids.empty(), "score: no tokens; expected at least one");
  check(std::ssize(ids) <= spec.context,
        "score: {} tokens; expected at most {}, the model's "
        "context",
        ids.size(), spec.context);
  const NoGradient off;
  std::vector<TokenLogprob> scores(1);
  constexpr int64_t kChunk = 256;  // the logits of a long text may take more memory than the model
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

double perplexity(double logprob, int64_t tokens) {
  return tokens > 0 ? math::exp(-logprob / static_cast<double>(tokens))
                    : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> probabilities(const std::vector<double>& logprobs) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const double logprob : logprobs) most = std::max(most, logprob);
  std::vector<double> shares;
  for (const double logprob : logprobs) {
    shares.push_back(math::exp(logprob - most));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace fovea
