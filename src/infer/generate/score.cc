#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "cache/kv_cache.h"
#include "fovea/infer/generate.h"
#include "generate/reading.h"
#include "generate/rules.h"
#include "generate/sampler.h"
#include "open/model_parts.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

void check_scored(const model::Spec& spec, size_t tokens) {
  check(!spec.encoder, "score: the model has an encoder; expected a decoder-only model");
  check(tokens > 0, "score: no tokens; expected at least one");
  // The last token is predicted, but not read.
  check(static_cast<int64_t>(tokens) <= spec.context + 1,
        "score: {} tokens; expected at most {}, the model's context and the token after it", tokens,
        spec.context + 1);
}

VocabularySize vocabulary_of(const model::Model& model) {
  VocabularySize vocabulary{model.spec().vocabulary};
  if (model.has_tokenizer()) vocabulary.tokens = model.tokenizer().size();
  return vocabulary;
}

// A text in a pool, which is read in parts.
class ReadText {
 public:
  // `horizon` is the text's final length.
  ReadText(const model::Transformer& model, model::PagePool& pool, model::CachedText text,
           int64_t horizon)
      : model_(model), pool_(pool), text_(std::move(text)), horizon_(horizon) {}
  ~ReadText() { model::shorten(pool_, text_, 0); }
  ReadText(const ReadText&) = delete;
  ReadText& operator=(const ReadText&) = delete;

  // Reads further tokens; `images` are those of the text, or null.   -> hidden states [tokens, C]
  Tensor read(const std::vector<int32_t>& ids, const model::PromptImages* images) {
    const int64_t count = std::ssize(ids);
    if (!model::make_room(pool_, text_, text_.length + count))
      fail(ErrorKind::Internal, "score: the pool has too few pages");
    model::TokenVectors vectors;
    if (images != nullptr) images->add_vectors(text_.length, count, 0, vectors);
    return read_batch(model_, pool_, {{&text_, count, horizon_}}, ids, DType::f32, nullptr, {},
                      vectors);
  }
  model::CachedText fork() { return model::forked(pool_, text_); }

 private:
  const model::Transformer& model_;
  model::PagePool& pool_;
  model::CachedText text_;
  int64_t horizon_;
};

}  // namespace

std::vector<TokenLogprob> score(const model::Model& model, const std::vector<int32_t>& ids,
                                int64_t alternatives) {
  const FloatMode mode;
  const model::Transformer& transformer = model::parts_of(model).transformer;
  const model::Spec& spec = checked_writer(transformer.spec);
  check_scored(spec, ids.size());
  const NoGradient off;
  std::vector<TokenLogprob> scores(1);
  const VocabularySize vocabulary = vocabulary_of(model);
  constexpr int64_t kChunk = 256;  // the logits of a long text may take more memory than the model
  model::KvCache cache(model::page_layout(*spec.decoder, model::parts_of(model).cache), 1,
                       std::ssize(ids));
  model::Pass pass;
  pass.cache = &cache;
  for (int64_t begin = 0; begin + 1 < std::ssize(ids); begin += kChunk) {
    const int64_t T = std::min(kChunk, std::ssize(ids) - 1 - begin);
    const Tensor chunk = tensor_of(
        std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(T)), {1, T});
    const HostValues<float> logits(transformer.logits(transformer.hidden(chunk, pass)));
    for (int64_t t = 0; t < T; ++t) {
      scores.push_back(logprob_of(logits.row(t).data(), vocabulary,
                                  ids[static_cast<size_t>(begin + t + 1)], alternatives));
    }
  }
  return scores;
}

std::vector<double> score(const model::Model& model, const ImagePrompt& prompt,
                          const std::vector<std::vector<int32_t>>& continuations) {
  const FloatMode mode;
  const model::Transformer& transformer = model::parts_of(model).transformer;
  const model::Spec& spec = checked_writer(transformer.spec);
  size_t longest = 0;
  for (const auto& ids : continuations) {
    check(!ids.empty(), "score: a continuation has no tokens; expected at least one");
    for (const int32_t id : ids)
      check(id >= 0 && id < spec.vocabulary, "score: token {}; expected 0 to {}", id,
            spec.vocabulary - 1);
    longest = std::max(longest, ids.size());
  }
  const int64_t P = std::ssize(prompt.ids), total = P + static_cast<int64_t>(longest);
  check_scored(spec, prompt.ids.empty() ? 0 : static_cast<size_t>(total));
  const NoGradient off;
  constexpr int64_t kStep = 512;
  const int64_t pages = model::pages_for(total) + model::pages_for(total - P) + 1;
  model::PagePool pool(model::page_layout(*spec.decoder, model::parts_of(model).cache),
                       {pages, 2, kStep}, transformer.token_embedding.device());
  ReadText text(transformer, pool, {}, total);
  Tensor last;  // logits [1, V]
  for (int64_t begin = 0; begin < P; begin += kStep) {
    const int64_t count = std::min(kStep, P - begin);
    const Tensor hidden = text.read(
        {prompt.ids.begin() + begin, prompt.ids.begin() + begin + count}, prompt.images.get());
    if (begin + count == P)
      last = logits_of(transformer, hidden, {static_cast<int32_t>(count - 1)});
  }
  const VocabularySize vocabulary = vocabulary_of(model);
  std::vector<double> scores;
  for (const auto& ids : continuations) {
    double sum =
        double{logprob_of(HostValues<float>(last).all().data(), vocabulary, ids[0], 0).logprob};
    if (ids.size() > 1) {
      ReadText branch(transformer, pool, text.fork(), total);
      const HostValues<float> logits(
          transformer.logits(branch.read({ids.begin(), ids.end() - 1}, nullptr)));
      for (size_t i = 1; i < ids.size(); ++i)
        sum +=
            double{logprob_of(logits.row(static_cast<int64_t>(i) - 1).data(), vocabulary, ids[i], 0)
                       .logprob};
    }
    scores.push_back(sum);
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

}  // namespace fovea::infer
