// XTC, Mirostat, DRY and the order of the filters, each compared with its definition.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "fovea/core/random.h"
#include "generate/repetition.h"
#include "generate/sampler.h"
#include "support/expect_error.h"

namespace fovea::infer {
namespace {

using FurtherFloats = std::vector<float>;
using FurtherIds = std::vector<int32_t>;

Sampling unfiltered() {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .repetition_penalty = 1, .seed = 1};
}

FurtherFloats logs(const FurtherFloats& probabilities) {
  FurtherFloats logits;
  for (const float p : probabilities) logits.push_back(std::log(p));
  return logits;
}

std::vector<double> filtered(const Sampling& options, const FurtherFloats& logits,
                             bool excludes = false) {
  std::vector<double> p(logits.size());
  for (const auto& c : Sampler(options).distribution(logits.data(), std::ssize(logits), excludes))
    p[static_cast<size_t>(c.token)] = double{c.probability};
  return p;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

TEST(Xtc, DropsAllTopChoicesButTheLeastLikely) {
  const FurtherFloats logits = logs({0.1f, 0.4f, 0.3f, 0.15f, 0.05f});
  Sampling options = unfiltered();
  options.xtc_threshold = 0.15f - 1e-4f;
  expect_near(filtered(options, logits, true), {1 / 3.0, 0, 0, 0.5, 1 / 6.0});
  expect_near(filtered(options, logits), {0.1, 0.4, 0.3, 0.15, 0.05});
  options.xtc_threshold = 0.35f;  // a single top choice stays
  expect_near(filtered(options, logits, true), {0.1, 0.4, 0.3, 0.15, 0.05});
  options.xtc_threshold = 0.45f;
  expect_near(filtered(options, logits, true), {0.1, 0.4, 0.3, 0.15, 0.05});
}

TEST(Xtc, AppliesWithItsProbability) {
  const FurtherFloats logits = logs({0.6f, 0.4f});  // with XTC, token 0 is never drawn
  Sampling options = unfiltered();
  options.xtc_probability = 0.25f;
  Sampler sample(options);
  int64_t first = 0;
  constexpr int64_t kTokens = 40'000;
  for (int64_t i = 0; i < kTokens; ++i) first += sample(logits.data(), 2) == 0;
  // 5 standard deviations of a binomial count
  const double p = 0.75 * 0.6, deviation = std::sqrt(p * (1 - p) / double{kTokens});
  EXPECT_NEAR(static_cast<double>(first) / double{kTokens}, p, 5 * deviation);
}

TEST(Filters, ApplyInTheGivenOrder) {
  const FurtherFloats logits = logs({0.5f, 0.25f, 0.15f, 0.1f});
  Sampling options = unfiltered();
  options.temperature = 2;
  options.top_p = 0.7f;
  // Temperature first: the square roots are 0.707, 0.5, 0.387 and 0.316 of 1.910; three reach 0.83.
  options.samplers = "temperature;top_p";
  const double sum = std::sqrt(0.5) + std::sqrt(0.25) + std::sqrt(0.15);
  expect_near(filtered(options, logits),
              {std::sqrt(0.5) / sum, std::sqrt(0.25) / sum, std::sqrt(0.15) / sum, 0});
  EXPECT_EQ(filtered(options, logits), filtered(
                                           [&] {
                                             Sampling usual = options;
                                             usual.samplers = "";
                                             return usual;
                                           }(),
                                           logits));
  options.samplers = "top_p,temperature";  // two tokens reach 0.75
  const double two = std::sqrt(0.5) + std::sqrt(0.25);
  expect_near(filtered(options, logits), {std::sqrt(0.5) / two, std::sqrt(0.25) / two, 0, 0});
  options.samplers = "top_p";  // without the temperature
  expect_near(filtered(options, logits), {2 / 3.0, 1 / 3.0, 0, 0});
  options.samplers = "temperature";
  EXPECT_GT(filtered(options, logits)[3], 0);
  options.top_k = 2;
  options.top_p = 0.6f;
  options.samplers = "top_k;top_p";  // 0.5 of 0.75 reaches 0.6
  expect_near(filtered(options, logits), {1, 0, 0, 0});
  options.samplers = "top_p;top_k";
  expect_near(filtered(options, logits), {2 / 3.0, 1 / 3.0, 0, 0});
}

TEST(Filters, RefuseUnknownAndRepeatedNames) {
  expect_error(ErrorKind::InvalidArgument, {"samplers: \"topk\" is unknown", "top_k;top_n_sigma"},
               [] { filter_order("topk"); });
  expect_error(ErrorKind::InvalidArgument, {"samplers: xtc is repeated"},
               [] { filter_order("xtc;xtc"); });
  expect_error(ErrorKind::InvalidArgument, {"samplers: \"\" is unknown"},
               [] { filter_order("top_k;"); });
  EXPECT_EQ(filter_order("typ_p;min-p"), (std::vector<Filter>{Filter::typical_p, Filter::min_p}));
}

// Basu et al. 2021, algorithm 2, with the simplification of the authors' program: drop tokens whose
// surprisal exceeds mu, draw, and mu -= eta * (surprisal of the drawn token - tau).
TEST(Mirostat, FollowsTheAlgorithm) {
  Random random(3, Stream::init);
  Sampling options = unfiltered();
  options.mirostat = 2;
  options.mirostat_tau = 1.5f;
  options.mirostat_eta = 0.3f;
  options.temperature = 0.9f;
  options.top_k = 1;  // has no effect
  Sampler sample(options);
  double mu = 2 * 1.5;
  for (int step = 0; step < 300; ++step) {
    FurtherFloats logits(40);
    for (float& logit : logits) logit = 2 * random.normal();
    std::vector<double> p;
    for (const float logit : logits) p.push_back(std::exp(double{logit} / 0.9f));
    const double all = std::accumulate(p.begin(), p.end(), 0.0);
    const double best = *std::max_element(p.begin(), p.end());
    double kept = 0;
    for (double& x : p) {
      if (x < best && -std::log2(x / all) > mu) x = 0;
      kept += x;
    }
    for (double& x : p) x /= kept;
    const auto distribution = sample.distribution(logits.data(), 40);
    EXPECT_EQ(std::ssize(distribution),
              std::count_if(p.begin(), p.end(), [](double x) { return x > 0; }));
    for (const auto& c : distribution)
      EXPECT_NEAR(double{c.probability}, p[static_cast<size_t>(c.token)], 1e-5);
    const auto token = static_cast<size_t>(sample(logits.data(), 40));
    mu -= double{0.3f} * (-std::log2(p[token]) - 1.5);
  }
}

TEST(Mirostat, HoldsTheSurprisal) {
  Random random(4, Stream::init);
  Sampling options = unfiltered();
  options.mirostat = 2;
  for (const float tau : {1.0f, 3.0f}) {
    options.mirostat_tau = tau;
    Sampler sample(options);
    double sum = 0;
    constexpr int kTokens = 4000;
    for (int i = 0; i < kTokens; ++i) {
      FurtherFloats logits(500);
      for (float& logit : logits) logit = 2 * random.normal();
      const auto before = sample.distribution(logits.data(), 500);
      const int32_t token = sample(logits.data(), 500);
      for (const auto& c : before)
        if (c.token == token) sum -= std::log2(double{c.probability});
    }
    EXPECT_NEAR(sum / kTokens, double{tau}, 0.1);
  }
}

// The loops of the definition (oobabooga/text-generation-webui#5677).
std::map<int32_t, int64_t> repetitions(const FurtherIds& seen, const std::set<int32_t>& breakers) {
  std::map<int32_t, int64_t> longest;
  const auto size = std::ssize(seen);
  const auto at = [&](int64_t i) { return seen[static_cast<size_t>(i)]; };
  if (size == 0 || breakers.contains(at(size - 1))) return longest;
  for (int64_t i = 0; i + 1 < size; ++i) {
    if (at(i) != at(size - 1) || breakers.contains(at(i + 1))) continue;
    int64_t length = 1;
    while (i - length >= 0 && at(i - length) == at(size - 1 - length) &&
           !breakers.contains(at(i - length)))
      ++length;
    longest[at(i + 1)] = std::max(longest[at(i + 1)], length);
  }
  return longest;
}

TEST(Dry, PenalisesByTheDefinition) {
  Random random(5, Stream::init);
  for (int round = 0; round < 300; ++round) {
    FurtherIds seen(random.word() % 60);
    for (int32_t& id : seen) id = static_cast<int32_t>(random.word() % 4);
    Sampling options;
    options.dry_multiplier = 0.8f;
    options.dry_allowed_length = 1 + random.word() % 4;
    options.dry_penalty_last_n = round % 3 == 0 ? random.word() % 40 : -1;
    options.dry_breaker_ids = {0};
    FurtherFloats logits(4, 1.0f);
    penalise_repetition(logits.data(), 4, seen, options);
    FurtherIds recent = seen;
    if (options.dry_penalty_last_n >= 0)
      recent.erase(recent.begin(),
                   recent.end() - std::min(std::ssize(recent), options.dry_penalty_last_n));
    const auto lengths = repetitions(recent, {0});
    for (int32_t id = 0; id < 4; ++id) {
      double expected = 1;
      if (const auto found = lengths.find(id);
          found != lengths.end() && found->second >= options.dry_allowed_length)
        expected -= double{0.8f} *
                    std::pow(1.75, static_cast<double>(found->second - options.dry_allowed_length));
      const double actual = double{logits[static_cast<size_t>(id)]};
      EXPECT_NEAR(actual, expected, 1e-5 * std::abs(expected)) << round;
    }
  }
}

TEST(Dry, StaysFiniteForLongRepetitions) {
  const FurtherIds seen(5000, 1);
  Sampling options;
  options.dry_multiplier = 1;
  FurtherFloats logits(3, 0.0f);
  penalise_repetition(logits.data(), 3, seen, options);
  EXPECT_LT(logits[1], -1e20f);
  EXPECT_TRUE(std::isfinite(logits[1]));
  EXPECT_EQ(logits[2], 0);
}

TEST(Filters, ApplyPenaltiesInTheirOrder) {
  const FurtherFloats logits = logs({0.4f, 0.3f, 0.2f, 0.1f});
  Sampling options = unfiltered();
  options.top_k = 2;
  // Token 0 is made impossible.
  const Sampler::Adjust adjust = [](Filter filter, float* row) {
    ASSERT_EQ(filter, Filter::penalties);
    row[0] -= 100;
  };
  const auto with = [&](const char* samplers) {
    options.samplers = samplers;
    std::vector<double> p(4);
    for (const auto& c : Sampler(options).distribution(logits.data(), 4, false, adjust))
      p[static_cast<size_t>(c.token)] = double{c.probability};
    return p;
  };
  expect_near(with("penalties;top_k"), {0, 0.6, 0.4, 0});
  expect_near(with("top_k;penalties"), {0, 1, 0, 0});
  expect_near(with("top_k;temperature;penalties"), {0, 1, 0, 0});
  expect_near(with("top_k"), {4 / 7.0, 3 / 7.0, 0, 0});
}

}  // namespace
}  // namespace fovea::infer
