#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/fields.h"
#include "base/math.h"
#include "kernels/kernels.h"

namespace fovea::infer {
namespace {

using Candidates = std::vector<Sampler::Candidate>;

bool likelier(const Sampler::Candidate& a, const Sampler::Candidate& b) {
  if (a.probability != b.probability) return a.probability > b.probability;
  return a.token < b.token;
}

// A vocabulary may have 100,000 tokens, and a server draws tokens for many requests. The loops
// below therefore process blocks of logits, which the compiler vectorises.
constexpr int64_t kBlock = 64;

template <class Test>
bool any_of_block(const float* x, const Test& test) {
  int32_t found = 0;
  for (int64_t i = 0; i < kBlock; ++i) found |= static_cast<int32_t>(test(x[i]));
  return found != 0;
}

// Returns the largest element of x [count]; NaN if one is NaN.
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

// Returns the first index of `value` in x [count], where it must occur.
int64_t index_of(float value, const float* x, int64_t count) {
  int64_t i = 0;
  while (i + kBlock <= count && !any_of_block(x + i, [=](float here) { return here == value; }))
    i += kBlock;
  return std::find(x + i, x + count, value) - x;
}

Candidates every_logit(const float* logits, int64_t V) {
  Candidates all(static_cast<size_t>(V));
  for (int64_t token = 0; token < V; ++token)
    all[static_cast<size_t>(token)] = {static_cast<int32_t>(token), logits[token]};
  return all;
}

// Returns the mean of term(x) over the finite elements of x [count].
template <class Term>
double mean_of(const float* x, int64_t count, const Term& term) {
  constexpr int64_t kLanes = 16;
  double sums[kLanes] = {};
  int64_t finite[kLanes] = {};
  const auto add = [&](int64_t i, int64_t lane) {
    const bool counted = std::isfinite(x[i]);
    sums[lane] += counted ? term(double{x[i]}) : 0;
    finite[lane] += counted;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  for (; i < count; ++i) add(i, 0);
  return std::accumulate(sums, sums + kLanes, 0.0) /
         static_cast<double>(std::accumulate(finite, finite + kLanes, int64_t{0}));
}

// Top-n-sigma (Tang et al. 2024): keeps tokens whose logit is at least the highest one minus n
// standard deviations of all logits. Forbidden tokens, whose logit is -inf, do not count.
void keep_within_deviations(Candidates& candidates, const float* logits, int64_t V, float highest,
                            float n) {
  const double mean = mean_of(logits, V, [](double x) { return x; });
  const double variance = mean_of(logits, V, [=](double x) { return (x - mean) * (x - mean); });
  const double least = highest - n * std::sqrt(variance);
  std::erase_if(candidates, [=](const auto& c) { return logits[c.token] < least; });
}

// Replaces the logits of the candidates, the largest of which is `highest`, by softmax(logits /
// temperature).
void softmax(Candidates& candidates, float highest, float temperature) {
  std::vector<float> p(candidates.size());
  for (size_t i = 0; i < p.size(); ++i) p[i] = (candidates[i].probability - highest) / temperature;
  kernels_for(DType::f32).softmax({p.data()}, {p.data()}, {1, std::ssize(p)});
  for (size_t i = 0; i < p.size(); ++i) candidates[i].probability = p[i];
}

void normalise(Candidates& candidates) {
  double sum = 0;
  for (const auto& c : candidates) sum += c.probability;
  const double inverse = 1 / sum;
  for (auto& c : candidates) c.probability = static_cast<float>(c.probability * inverse);
}

// Keeps the candidates of lowest rank(candidate) until the sum of their probabilities reaches
// `share`, including the one that reaches it. Uses partitioning instead of sorting. The order
// within each half depends on the C++ library, so probabilities are summed as integers, in units of
// 2^-56, for which the order does not matter.
template <class Rank>
void keep_share(Candidates& candidates, double share, const Rank& rank) {
  struct Ranked {
    double rank;
    int32_t token;
    int64_t probability;
    bool operator<(const Ranked& other) const {
      return rank != other.rank ? rank < other.rank : token < other.token;
    }
  };
  std::vector<Ranked> all;
  all.reserve(candidates.size());
  const auto units = [](double x) { return static_cast<int64_t>(x * 0x1p56); };
  for (const auto& c : candidates) all.push_back({rank(c), c.token, units(c.probability)});
  int64_t inside = 0;  // probability before `begin`; the last kept candidate is before `end`
  auto begin = all.begin(), end = all.end();
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    int64_t sum = inside;
    for (auto at = begin; at != middle; ++at) sum += at->probability;
    if (sum >= units(share))
      end = middle;
    else
      begin = middle, inside = sum;
  }
  const Ranked last = *begin;
  std::erase_if(candidates, [&](const auto& c) { return last < Ranked{rank(c), c.token, 0}; });
}

// Nucleus sampling (Holtzman et al. 2020).
void keep_nucleus(Candidates& candidates, float share) {
  // The candidates below `least` have a total probability of less than 1 - share.
  const double least = (1 - double{share}) / static_cast<double>(candidates.size()) / 2;
  std::erase_if(candidates, [=](const auto& c) { return c.probability < least; });
  keep_share(candidates, share, [](const auto& c) { return -double{c.probability}; });
}

// Typical sampling (Meister et al. 2023): ranks tokens by the difference between their surprisal
// and the entropy of the distribution.
void keep_typical(Candidates& candidates, float share) {
  double entropy = 0;
  for (const auto& c : candidates) entropy -= c.probability * math::log(double{c.probability});
  keep_share(candidates, share,
             [=](const auto& c) { return std::abs(-math::log(double{c.probability}) - entropy); });
}

// Min-p sampling (Nguyen et al. 2024): keeps tokens with at least the fraction `part` of the
// largest probability.
void keep_likely(Candidates& candidates, float part) {
  float most = 0;
  for (const auto& c : candidates) most = std::max(most, c.probability);
  std::erase_if(candidates, [=](const auto& c) { return c.probability < part * most; });
}

// Keeps the `count` largest candidates.
void keep_largest(Candidates& candidates, int64_t count) {
  std::nth_element(candidates.begin(), candidates.begin() + count, candidates.end(), likelier);
  candidates.resize(static_cast<size_t>(count));
  std::sort(candidates.begin(), candidates.end(), likelier);
}

// XTC (p-e-w 2024, oobabooga/text-generation-webui#6335): of the tokens with at least the
// probability `threshold`, keeps the least likely one.
void exclude_top(Candidates& candidates, float threshold) {
  const Sampler::Candidate* least = nullptr;
  for (const auto& c : candidates)
    if (c.probability >= threshold && (least == nullptr || likelier(*least, c))) least = &c;
  if (least == nullptr) return;
  const int32_t kept = least->token;
  std::erase_if(candidates,
                [=](const auto& c) { return c.probability >= threshold && c.token != kept; });
}

double surprisal_of(float probability) {  // in bits
  return -math::log(double{probability}) / std::numbers::ln2;
}

// Mirostat 2.0 (Basu et al. 2021, algorithm 2): keeps the tokens with at most this surprisal, and
// the most likely one.
void keep_unsurprising(Candidates& candidates, double most) {
  const auto best = *std::min_element(candidates.begin(), candidates.end(), likelier);
  std::erase_if(candidates, [&](const auto& c) {
    return c.probability == 0 || (c.token != best.token && surprisal_of(c.probability) > most);
  });
}

// The candidates after the filters so far. They hold logits until a filter needs probabilities.
class FilterChain {
 public:
  FilterChain(const Sampling& options, const std::vector<Filter>& order, const float* logits,
              int64_t V, float highest, const Sampler::Adjust& adjust)
      : options_(options), logits_(logits), V_(V), highest_(highest), adjust_(adjust) {
    const bool all =
        order.empty() || order.front() != Filter::top_k || options.top_k == 0 || options.top_k >= V;
    candidates_ = all ? every_logit(logits, V) : largest_logits(logits, V, options.top_k);
  }

  void apply(Filter filter) {
    const Sampling& o = options_;
    switch (filter) {
      case Filter::top_k:
        if (o.top_k == 0 || std::ssize(candidates_) <= o.top_k) return;
        keep_largest(candidates_, o.top_k);
        normal_ = false;
        return;
      case Filter::top_n_sigma:
        if (o.top_n_sigma == 0) return;
        keep_within_deviations(candidates_, logits_, V_, highest_, o.top_n_sigma);
        normal_ = false;
        return;
      case Filter::temperature: return set_temperature(o.temperature);
      case Filter::top_p:
        if (o.top_p == 1) return;
        keep_nucleus(probable(), o.top_p);
        return normalise(candidates_);
      case Filter::typical_p:
        if (o.typical_p < 1) keep_typical(probable(), o.typical_p), normal_ = false;
        return;
      case Filter::min_p:
        if (o.min_p > 0) keep_likely(probable(), o.min_p), normal_ = false;
        return;
      case Filter::xtc: exclude_top(probable(), o.xtc_threshold), normal_ = false; return;
      case Filter::penalties:
      case Filter::dry:
        if (adjust_) adjust(filter);
    }
  }

  Candidates result() {
    to_probabilities();
    normalise(candidates_);
    return std::move(candidates_);
  }

 private:
  // Changes the logits; the candidates hold logits again.
  void adjust(Filter filter) {
    if (adjusted_.empty()) adjusted_.assign(logits_, logits_ + V_);
    adjust_(filter, adjusted_.data());
    logits_ = adjusted_.data();
    highest_ = -std::numeric_limits<float>::infinity();
    for (auto& c : candidates_) {
      c.probability = logits_[c.token];
      highest_ = std::max(highest_, c.probability);
    }
    probable_ = normal_ = false;
  }

  void set_temperature(float temperature) {
    temperature_ = temperature;
    if (!std::exchange(probable_, false)) return;
    for (auto& c : candidates_) c.probability = logits_[c.token];
  }

  void to_probabilities() {
    if (std::exchange(probable_, true)) return;
    softmax(candidates_, highest_, temperature_);
    std::erase_if(candidates_, [](const auto& c) { return c.probability == 0; });
    normal_ = true;
  }

  // Returns the candidates with probabilities whose sum is 1.
  Candidates& probable() {
    to_probabilities();
    if (!std::exchange(normal_, true)) normalise(candidates_);
    return candidates_;
  }

  const Sampling& options_;
  const float* logits_;
  int64_t V_;
  float highest_, temperature_ = 1;
  const Sampler::Adjust& adjust_;
  std::vector<float> adjusted_;  // [V]: the logits after adjust()
  Candidates candidates_;
  bool probable_ = false;  // they hold probabilities
  bool normal_ = false;    // the sum of the probabilities is 1
};

}  // namespace

std::vector<Sampler::Candidate> largest_logits(const float* logits, int64_t V, int64_t count) {
  Candidates kept;  // a heap with the least likely first
  const auto offer = [&](int64_t token) {
    if (std::ssize(kept) == count) {
      if (!(logits[token] > kept.front().probability)) return;
      std::pop_heap(kept.begin(), kept.end(), likelier);
      kept.pop_back();
    }
    kept.push_back({static_cast<int32_t>(token), logits[token]});
    std::push_heap(kept.begin(), kept.end(), likelier);
  };
  for (int64_t begin = 0; begin < V; begin += kBlock) {
    if (std::ssize(kept) == count && begin + kBlock <= V) {
      const float least = kept.front().probability;
      if (!any_of_block(logits + begin, [=](float here) { return here > least; })) continue;
    }
    for (int64_t token = begin; token < std::min(begin + kBlock, V); ++token) offer(token);
  }
  std::sort_heap(kept.begin(), kept.end(), likelier);
  return kept;
}

std::vector<Filter> filter_order(const std::string& samplers) {
  static const std::vector<std::string> names = {"top_k", "top_n_sigma", "temperature",
                                                 "top_p", "typical_p",   "min_p",
                                                 "xtc",   "penalties",   "dry"};
  std::vector<Filter> order;
  if (samplers.empty()) {
    for (int i = 0; i <= static_cast<int>(Filter::xtc); ++i)
      order.push_back(static_cast<Filter>(i));
    return order;
  }
  for (size_t begin = 0, end = 0; begin <= samplers.size(); begin = end + 1) {
    end = std::min(samplers.find_first_of(";,", begin), samplers.size());
    std::string name = samplers.substr(begin, end - begin);
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == "typ_p") name = "typical_p";  // as in llama.cpp
    const auto found = std::find(names.begin(), names.end(), name);
    const auto filter = static_cast<Filter>(found - names.begin());
    check_field(found != names.end(), "samplers", "\"{}\" is unknown; expected some of {}", name,
                fmt::join(names, ";"));
    check_field(std::find(order.begin(), order.end(), filter) == order.end(), "samplers",
                "{} is repeated; expected each name once", name);
    order.push_back(filter);
  }
  return order;
}

bool among_filters(const GenerateOptions& o, const char* name) {
  const Sampling& s = o.sampling;
  return o.beams == 1 && s.temperature > 0 && s.mirostat == 0 &&
         s.samplers.find(name) != std::string::npos;
}

Sampler::Sampler(const Sampling& options, int64_t generation)
    : options_(options),
      order_(filter_order(options.samplers)),
      most_surprisal_(2 * double{options.mirostat_tau}),
      random_(options.seed, Stream::sampling, static_cast<uint32_t>(generation)) {}

std::vector<Sampler::Candidate> Sampler::distribution(const float* logits, int64_t vocabulary,
                                                      bool excludes, const Adjust& adjust) const {
  const float highest = largest_of(logits, vocabulary);
  if (std::isnan(highest)) {
    fail(ErrorKind::Failed, "generate: the model's logits are NaN; expected finite weights");
  }
  if (!std::isfinite(highest)) {
    fail(ErrorKind::Failed, "generate: the highest logit is {}; expected finite weights", highest);
  }
  if (options_.temperature == 0) {
    return {{static_cast<int32_t>(index_of(highest, logits, vocabulary)), 1.0f}};
  }
  if (options_.mirostat == 0) {
    FilterChain chain(options_, order_, logits, vocabulary, highest, adjust);
    for (const Filter filter : order_)
      if (filter != Filter::xtc || excludes) chain.apply(filter);
    return chain.result();
  }
  Candidates candidates = every_logit(logits, vocabulary);
  softmax(candidates, highest, options_.temperature);
  keep_unsurprising(candidates, most_surprisal_);
  normalise(candidates);
  return candidates;
}

// Mirostat 2.0: the limit follows the error of the surprisal of the drawn token.
void Sampler::settle_surprisal(float probability) {
  const double surprisal = surprisal_of(probability);
  most_surprisal_ -= double{options_.mirostat_eta} * (surprisal - double{options_.mirostat_tau});
}

int32_t Sampler::operator()(const float* logits, int64_t vocabulary, const Adjust& adjust) {
  const bool excludes =
      options_.xtc_probability > 0 && random_.uniform_double() < options_.xtc_probability;
  const auto candidates = distribution(logits, vocabulary, excludes, adjust);
  double left = random_.uniform_double();
  const Candidate* drawn = &candidates.back();
  for (const Candidate& c : candidates) {
    left -= c.probability;
    if (left >= 0) continue;
    drawn = &c;
    break;
  }
  if (options_.mirostat != 0 && options_.temperature > 0) settle_surprisal(drawn->probability);
  return drawn->token;
}

double log_sum(const float* logits, int64_t vocabulary) {
  constexpr int32_t kNone = -1;  // no label: only the sum is needed
  float loss = 0, sum = 0;
  kernels_for(DType::f32).cross_entropy({&loss}, {&sum}, {logits}, &kNone, 0, {1, vocabulary});
  return sum;
}

TokenLogprob logprob_of(const float* logits, VocabularySize vocabulary, int32_t id, int64_t count) {
  // The kernel, and so the bits, are those of training.
  float loss = 0, all = 0;
  kernels_for(DType::f32).cross_entropy({&loss}, {&all}, {logits}, &id, 0, {1, vocabulary.logits});
  TokenLogprob result;
  result.logprob = 0 - loss;  // not -0
  if (count <= 0) return result;
  const int64_t tokens = std::min(vocabulary.logits, vocabulary.tokens);
  for (const auto& [token, logit] : largest_logits(logits, tokens, std::min(count, tokens)))
    result.top.emplace_back(token, token == id ? result.logprob : logit - all);
  return result;
}

}  // namespace fovea::infer
