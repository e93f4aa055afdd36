#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fovea/core/random.h"
#include "fovea/infer/generate.h"

namespace fovea::infer {

// The filters of the next token's distribution.
enum class Filter { top_k, top_n_sigma, temperature, top_p, typical_p, min_p, xtc, penalties, dry };
// Parses Sampling::samplers. Throws InvalidArgument for unknown and repeated names.
std::vector<Filter> filter_order(const std::string& samplers);

// Returns whether the sampler applies the filter, which is penalties or dry, among the others.
bool among_filters(const GenerateOptions& options, const char* name);

// Draws tokens from logits. The n-th random number of a seed is always the same, independent of
// other requests. The generations of one request have separate random streams.
class Sampler {
 public:
  // The options must be in range; see check_options() in rules.h.
  explicit Sampler(const Sampling& options, int64_t generation = 0);

  // Changes logits [V] as Filter::penalties or Filter::dry do.
  using Adjust = std::function<void(Filter filter, float* logits)>;

  // Draws a token from logits [V], to which the rules have been applied. `adjust` is called for the
  // penalties that are among the filters. Throws Failed if a logit is NaN or +infinity, or if no
  // logit is finite.
  int32_t operator()(const float* logits, int64_t vocabulary, const Adjust& adjust = {});

  // Returns the distribution of the next token: pairs (token, probability), in an order that
  // depends only on the logits and the options. Throws the same errors.
  struct Candidate {
    int32_t token;
    float probability;
  };
  // `excludes`: XTC applies to this token.
  std::vector<Candidate> distribution(const float* logits, int64_t vocabulary,
                                      bool excludes = false, const Adjust& adjust = {}) const;

 private:
  void settle_surprisal(float probability);

  Sampling options_;
  std::vector<Filter> order_;
  double most_surprisal_;  // Mirostat: tokens with a higher surprisal are dropped, in bits
  Random random_;
};

// The number of logits, and of the tokens among them: the model's vocabulary may be larger than the
// tokenizer's, whose ids come first.
struct VocabularySize {
  int64_t logits;
  int64_t tokens = logits;  // may exceed `logits`: all of them are tokens
};
// Returns, for logits [V], the log-probability of `id`, and the `count` most likely tokens with
// their log-probabilities. Probabilities are shares in all logits.
TokenLogprob logprob_of(const float* logits, VocabularySize vocabulary, int32_t id, int64_t count);
// Returns the `count` largest of logits [V] with their ids, in descending order.
std::vector<Sampler::Candidate> largest_logits(const float* logits, int64_t vocabulary,
                                               int64_t count);
// Returns the logarithm of the sum of exp(logits).
double log_sum(const float* logits, int64_t vocabulary);

}  // namespace fovea::infer
