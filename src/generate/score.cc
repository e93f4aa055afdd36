#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "cache/kv_cache.h"
#include "families/model_parts.h"
#include "fovea/generate.h"
#include "generate/rules.h"
#include "generate/sampler.h"
#include "tensor/tape.h"

namespace fovea {

std::vector<TokenLogprob> score(const Model& model, const std::vector<int32_t>& ids,
                                int64_t alternatives) {
  const FloatMode mode;
  const Transformer& transformer = model.parts().transformer;
  const Spec& spec = checked_writer(transformer.spec);
  check(!spec.encoder, "score: the model has an encoder; expected a decoder-only model");
  check(!ids.empty(), "score: no tokens; expected at least one");
  check(std::ssize(ids) <= spec.context,
        "score: {} tokens; expected at most {}, the model's context", ids.size(), spec.context);
  const NoGradient off;
  std::vector<TokenLogprob> scores(1);
  VocabularySize vocabulary{spec.vocabulary};
  if (model.has_tokenizer()) vocabulary.tokens = model.tokenizer().size();
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
      scores.push_back(logprob_of(logits.data_as<float>() + t * spec.vocabulary, vocabulary,
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
