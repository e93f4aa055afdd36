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

// The largest of x [count], NaN where one is. Sixteen at a time, so that the loop becomes vectors:
// a vocabulary has 100,000 logits and a server draws for many.
float largest_of(const float* x, int64_t count) {
  constexpr int64_t kLanes = 16;
  float most[kLanes];
  std::fill(most, most + kLanes, -std::numeric_limits<float>::infinity());
  int32_t bad[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = x[i + lane];
      most[lane] = value > most[lane] ? value : most[lane];
      bad[lane] |= value != value;
    }
  }
  for (; i < count; ++i) {
    most[0] = std::max(most[0], x[i]);
    bad[0] |= x[i] != x[i];
  }
  if (std::any_of(bad, bad + kLanes, [](int32_t b) { return b != 0; })) return std::nanf("");
  return *std::max_element(most, most + kLanes);
}

// The first place of `value`, which is there, in x [count].
int64_t place_of(float value, const float* x, int64_t count) {
  constexpr int64_t kLanes = 64;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    int32_t here = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) here |= x[i + lane] == value;
    if (here != 0) break;
  }
  return std::find(x + i, x + count, value) - x;
}

Candidates every_logit(const float* logits, int64_t V) {
  Candidates all;
  all.reserve(static_cast<size_t>(V));
  for (int64_t token = 0; token < V; ++token)
    all.push_back({static_cast<int32_t>(token), logits[token]});
  return all;
}

// The `count` largest of logits [V], in order.
Candidates largest_logits(const float* logits, int64_t V, int64_t count) {
  Candidates kept;  // a heap, in front the least likely
  for (int64_t token = 0; token < V; ++token) {
    const bool full = std::ssize(kept) == count;
    if (full && !(logits[token] > kept.front().probability)) continue;
    if (full) {
      std::pop_heap(kept.begin(), kept.end(), likelier);
      kept.pop_back();
    }
    kept.push_back({static_cast<int32_t>(token), logits[token]});
    std::push_heap(kept.begin(), kept.end(), likelier);
  }
  std::sort_heap(kept.begin(), kept.end(), likelier);
  return kept;
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
  const float highest = largest_of(logits, vocabulary);
  if (std::isnan(highest)) {
    fail(ErrorKind::Failed,
         "generate: the model's logits are not numbers; expected finite weights");
  }
  if (!std::isfinite(highest)) {
    fail(ErrorKind::Failed, "generate: the highest logit is {}; expected finite weights", highest);
  }
  if (options_.temperature == 0) {
    return {{static_cast<int32_t>(place_of(highest, logits, vocabulary)), 1.0f}};
  }
  const bool all = options_.top_k == 0 || options_.top_k >= vocabulary;
  Candidates candidates =
      all ? every_logit(logits, vocabulary) : largest_logits(logits, vocabulary, options_.top_k);
  for (Candidate& c : candidates)
    c.probability = std::exp((c.probability - highest) / options_.temperature);
  std::erase_if(candidates, [](const Candidate& c) { return c.probability == 0; });
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
  for (const auto& [token, logit] : largest_logits(logits, vocabulary, std::min(count, vocabulary)))
    result.top.emplace_back(token, logit - all);
  return result;
}

}  // namespace fovea
