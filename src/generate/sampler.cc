#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fovea {
namespace {

// Keskar et al. 2019, section 4.1, as transformers applies it: once for each distinct token.
void penalise(std::vector<float>& logits, const std::vector<int32_t>& seen, float penalty) {
  std::vector<int32_t> distinct = seen;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const int32_t token : distinct) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

bool likelier(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  if (a.probability != b.probability) return a.probability > b.probability;
  return a.token < b.token;
}

void normalise(std::vector<Sampler::Candidate>& candidates) {
  double sum = 0;
  for (const auto& c : candidates) sum += c.probability;
  for (auto& c : candidates) c.probability = static_cast<float>(c.probability / sum);
}

}  // namespace

Sampler::Sampler(const Sampling& options)
    : options_(options), random_(options.seed, Stream::sampling) {
  const auto in = [](float x, float least, float most) { return x >= least && x <= most; };
  check(in(options.temperature, 0, 100), "--temperature: {}; expected 0 to 100",
        options.temperature);
  check(options.top_k >= 0, "--top-k: {}; expected 0 or more", options.top_k);
  check(options.top_p > 0 && options.top_p <= 1, "--top-p: {}; expected more than 0, up to 1",
        options.top_p);
  check(in(options.min_p, 0, 1), "--min-p: {}; expected 0 to 1", options.min_p);
  check(options.repetition_penalty > 0 && options.repetition_penalty <= 100,
        "--repetition-penalty: {}; expected more than 0, up to 100", options.repetition_penalty);
}

std::vector<Sampler::Candidate> Sampler::distribution(const float* logits, int64_t vocabulary,
                                                      const std::vector<int32_t>& seen) const {
  std::vector<float> scores(logits, logits + vocabulary);
  for (const float score : scores) {
    if (std::isnan(score))
      fail(ErrorKind::Failed,
           "generate: the model's logits are not numbers; expected finite weights");
  }
  if (options_.repetition_penalty != 1) penalise(scores, seen, options_.repetition_penalty);
  const float highest = *std::max_element(scores.begin(), scores.end());
  if (!std::isfinite(highest)) {
    fail(ErrorKind::Failed, "generate: the highest logit is {}; expected finite weights", highest);
  }

  std::vector<Candidate> candidates;
  const bool greedy = options_.temperature == 0;
  for (int64_t token = 0; token < vocabulary; ++token) {
    const float score = scores[static_cast<size_t>(token)];
    const float weight = greedy ? static_cast<float>(score == highest)
                                : std::exp((score - highest) / options_.temperature);
    if (weight > 0) candidates.push_back({static_cast<int32_t>(token), weight});
  }
  std::sort(candidates.begin(), candidates.end(), likelier);
  if (greedy) candidates.resize(1);
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates.size()) {
    candidates.resize(static_cast<size_t>(options_.top_k));
  }
  normalise(candidates);
  if (options_.top_p < 1) {
    // Holtzman et al. 2020: the token that crosses the line is the last one in.
    double sum = 0;
    size_t kept = 0;
    while (kept < candidates.size() && sum < options_.top_p) sum += candidates[kept++].probability;
    candidates.resize(kept);
  }
  const float least = options_.min_p * candidates[0].probability;  // Nguyen et al. 2024
  std::erase_if(candidates, [&](const Candidate& c) { return c.probability < least; });
  normalise(candidates);
  return candidates;
}

int32_t Sampler::operator()(const float* logits, int64_t vocabulary,
                            const std::vector<int32_t>& seen) {
  const auto candidates = distribution(logits, vocabulary, seen);
  double left = random_.uniform_double();
  for (const Candidate& c : candidates) {
    left -= c.probability;
    if (left < 0) return c.token;
  }
  return candidates.back().token;
}

}  // namespace fovea
