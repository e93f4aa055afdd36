#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea {
namespace {

using Candidates = std::vector<Sampler::Candidate>;

bool likelier(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  if (a.probability != b.probability) return a.probability > b.probability;
  return a.token < b.token;
}

void normalise(Candidates& candidates) {
  double sum = 0;
  for (const auto& c : candidates) sum += c.probability;
  for (auto& c : candidates) c.probability = static_cast<float>(c.probability / sum);
}

// The first `count` in order; what is behind them is in none.
void sort_first(Candidates& candidates, size_t count) {
  if (count < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                     candidates.end(), likelier);
  }
  count = std::min(count, candidates.size());
  std::sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count), likelier);
}

// Holtzman et al. 2020: the token that crosses the line is the last one in. Few tokens hold most
// of the probability, so only as many are sorted as it takes.
void keep_nucleus(Candidates& candidates, float share) {
  constexpr size_t kFirst = 64, kGrowth = 8;
  for (size_t sorted = kFirst;; sorted *= kGrowth) {
    sort_first(candidates, sorted);
    double sum = 0;
    size_t kept = 0;
    while (kept < std::min(sorted, candidates.size()) && sum < share)
      sum += candidates[kept++].probability;
    if (sum < share && kept < candidates.size()) continue;
    candidates.resize(kept);
    return;
  }
}

// Meister et al. 2023: by the distance of a token's surprise from the distribution's entropy.
void keep_typical(Candidates& candidates, float share) {
  double entropy = 0;
  for (const auto& c : candidates) entropy -= c.probability * std::log(double{c.probability});
  const auto distance = [&](const Sampler::Candidate& c) {
    return std::abs(-std::log(double{c.probability}) - entropy);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  double sum = 0;
  size_t kept = 0;
  while (kept < candidates.size() && sum < share) sum += candidates[kept++].probability;
  candidates.resize(kept);
}

// In lanes, as one after the other the numbers of a vocabulary take longer than all else here.
float highest_of(const float* logits, int64_t vocabulary) {
  constexpr int64_t kLanes = 16;
  float highest[kLanes];
  int32_t wrong[kLanes] = {};
  std::fill(highest, highest + kLanes, -std::numeric_limits<float>::infinity());
  const auto look = [&](float x, int64_t lane) {
    highest[lane] = x > highest[lane] ? x : highest[lane];
    wrong[lane] |= static_cast<int32_t>(x != x);
  };
  int64_t i = 0;
  for (; i + kLanes <= vocabulary; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) look(logits[i + lane], lane);
  for (; i < vocabulary; ++i) look(logits[i], 0);
  if (std::any_of(wrong, wrong + kLanes, [](int32_t w) { return w != 0; }))
    fail(ErrorKind::Failed,
         "generate: the model's logits are not numbers; expected finite weights");
  return *std::max_element(highest, highest + kLanes);
}

}  // namespace

Sampler::Sampler(const Sampling& options, int64_t answer)
    : options_(options), random_(options.seed, Stream::sampling, static_cast<uint32_t>(answer)) {
  const auto in = [](float x, float least, float most) { return x >= least && x <= most; };
  check(in(options.temperature, 0, 100), "--temperature: {}; expected 0 to 100",
        options.temperature);
  check(options.top_k >= 0, "--top-k: {}; expected 0 or more", options.top_k);
  check(options.top_p > 0 && options.top_p <= 1, "--top-p: {}; expected more than 0, up to 1",
        options.top_p);
  check(options.typical_p > 0 && options.typical_p <= 1,
        "--typical-p: {}; expected more than 0, up to 1", options.typical_p);
  check(in(options.min_p, 0, 1), "--min-p: {}; expected 0 to 1", options.min_p);
  check(options.repetition_penalty > 0 && options.repetition_penalty <= 100,
        "--repetition-penalty: {}; expected more than 0, up to 100", options.repetition_penalty);
  check(in(options.presence_penalty, -100, 100), "--presence-penalty: {}; expected -100 to 100",
        options.presence_penalty);
  check(in(options.frequency_penalty, -100, 100), "--frequency-penalty: {}; expected -100 to 100",
        options.frequency_penalty);
}

std::vector<Sampler::Candidate> Sampler::distribution(const float* logits,
                                                      int64_t vocabulary) const {
  const float highest = highest_of(logits, vocabulary);
  if (!std::isfinite(highest)) {
    fail(ErrorKind::Failed, "generate: the highest logit is {}; expected finite weights", highest);
  }
  if (options_.temperature == 0) {
    const float* const likeliest = std::find(logits, logits + vocabulary, highest);
    return {{static_cast<int32_t>(likeliest - logits), 1.0f}};
  }

  Candidates candidates;
  for (int64_t token = 0; token < vocabulary; ++token) {
    const float weight = std::exp((logits[token] - highest) / options_.temperature);
    if (weight > 0) candidates.push_back({static_cast<int32_t>(token), weight});
  }
  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates.size()) {
    sort_first(candidates, static_cast<size_t>(options_.top_k));
    candidates.resize(static_cast<size_t>(options_.top_k));
  }
  normalise(candidates);
  if (options_.top_p < 1) {
    keep_nucleus(candidates, options_.top_p);
    normalise(candidates);
  }
  if (options_.typical_p < 1) keep_typical(candidates, options_.typical_p);
  sort_first(candidates, candidates.size());
  const float least = options_.min_p * candidates[0].probability;  // Nguyen et al. 2024
  std::erase_if(candidates, [&](const Candidate& c) { return c.probability < least; });
  normalise(candidates);
  return candidates;
}

int32_t Sampler::operator()(const float* logits, int64_t vocabulary) {
  const auto candidates = distribution(logits, vocabulary);
  double left = random_.uniform_double();
  for (const Candidate& c : candidates) {
    left -= c.probability;
    if (left < 0) return c.token;
  }
  return candidates.back().token;
}

double log_sum(const float* logits, int64_t vocabulary) {
  constexpr int32_t kNone = -1;  // of the labels, whose losses are of no interest here
  float loss = 0, sum = 0;
  kernels_for(DType::f32).cross_entropy({&loss}, {&sum}, {logits}, &kNone, 0, {1, vocabulary});
  return sum;
}

TokenLogprob logprob_of(const float* logits, int64_t vocabulary, int32_t id, int64_t count) {
  const auto all = static_cast<float>(log_sum(logits, vocabulary));
  TokenLogprob result;
  result.logprob = logits[id] - all;
  if (count <= 0) return result;
  Candidates candidates;
  for (int64_t i = 0; i < vocabulary; ++i)
    candidates.push_back({static_cast<int32_t>(i), logits[i]});
  const auto kept = static_cast<size_t>(std::min(count, vocabulary));
  sort_first(candidates, kept);
  for (size_t i = 0; i < kept; ++i)
    result.top.emplace_back(candidates[i].token, candidates[i].probability - all);
  return result;
}

}  // namespace fovea
