#include "generate/sampler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/expect_error.h"

namespace fovea::infer {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns options without filters: sampling from the softmax of the logits.
Sampling plain() {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .repetition_penalty = 1, .seed = 1};
}

// Returns the least logit that top-n-sigma keeps (Tang et al. 2024): the highest logit minus n
// standard deviations of the finite logits.
double least_logit(const Floats& logits, double n) {
  double sum = 0, squares = 0, count = 0;
  for (const double logit : logits)
    if (std::isfinite(logit)) sum += logit, ++count;
  for (const double logit : logits)
    if (std::isfinite(logit)) squares += std::pow(logit - sum / count, 2);
  return *std::max_element(logits.begin(), logits.end()) - n * std::sqrt(squares / count);
}

// Returns the exact probability of each token, computed from the definitions of the filters.
std::vector<double> exact(const Floats& logits, const Sampling& s) {
  std::vector<double> p;
  const double least_kept = least_logit(logits, s.top_n_sigma);
  for (const float logit : logits) {
    const bool kept = s.top_n_sigma == 0 || logit >= least_kept;
    p.push_back(kept ? std::exp(double{logit} / s.temperature) : 0);
  }
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  const auto normalise = [&] {
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
  };
  for (size_t i = 0; i < order.size(); ++i)
    if (s.top_k > 0 && i >= static_cast<size_t>(s.top_k)) p[order[i]] = 0;
  normalise();
  double before = 0;
  for (const size_t token : order) {
    const double here = p[token];
    if (before >= s.top_p) p[token] = 0;
    before += here;
  }
  const double least = s.min_p * *std::max_element(p.begin(), p.end());
  for (double& x : p)
    if (x < least) x = 0;
  normalise();
  return p;
}

// Returns how unlikely the counts are, in standard deviations (Wilson and Hilferty 1931).
double surprise(const std::vector<int64_t>& counts, const std::vector<double>& p, int64_t draws) {
  double chi_square = 0, degrees = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    const double expected = p[i] * static_cast<double>(draws);
    chi_square += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
    degrees += 1;
  }
  const double variance = 2 / (9 * degrees);
  return (std::cbrt(chi_square / degrees) - (1 - variance)) / std::sqrt(variance);
}

TEST(Samplers, DrawWithTheExactProbabilities) {
  const Floats logits{0.3f, 2.1f, -1, 0.3f, 1.7f, -0.5f, 0.9f, -2, 1.2f, 0, -3, 1.1f};
  constexpr int64_t kDraws = 1'000'000;
  constexpr double kDeviations = 3.719;  // p = 1e-4
  Sampling cold = plain(), hot = plain(), top_k = plain(), top_p = plain(), min_p = plain(),
           all = plain();
  cold.temperature = 0.6f;
  hot.temperature = 3;
  top_k.top_k = 5;
  top_p.top_p = 0.7f;
  min_p.min_p = 0.2f;
  all = {.temperature = 0.8f, .top_k = 9, .top_p = 0.95f, .min_p = 0.1f, .seed = 3};
  for (const Sampling& options : {cold, hot, top_k, top_p, min_p, all}) {
    Sampler sample(options);
    std::vector<int64_t> counts(logits.size());
    for (int64_t i = 0; i < kDraws; ++i)
      ++counts[static_cast<size_t>(sample(logits.data(), std::ssize(logits)))];
    const std::vector<double> p = exact(logits, options);
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_EQ(counts[i] > 0, p[i] > 0) << i;
    }
    EXPECT_LT(surprise(counts, p, kDraws), kDeviations);
  }
}

Floats probabilities(const Sampling& options, const Floats& logits) {
  Floats p(logits.size());
  for (const auto& c : Sampler(options).distribution(logits.data(), std::ssize(logits)))
    p[static_cast<size_t>(c.token)] = c.probability;
  return p;
}

TEST(Samplers, FilterByTheDefinitions) {
  Random random(1, Stream::init);
  for (int round = 0; round < 200; ++round) {
    Floats logits(1 + random.word() % 400);  // one to several blocks
    for (float& logit : logits) logit = 3 * random.normal();
    const Sampling options{.temperature = 0.1f + 2 * random.uniform(),
                           .top_k = random.word() % 12,
                           .top_p = 0.05f + 0.95f * random.uniform(),
                           .min_p = 0.3f * random.uniform(),
                           .top_n_sigma = std::max(0.0f, 4 * random.uniform() - 1)};
    const Floats actual = probabilities(options, logits);
    const std::vector<double> expected = exact(logits, options);
    for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << round;
  }
}

TEST(Samplers, PreferLowerIdsInTies) {
  const Floats logits{1, 2, 2, 2, 0};
  Sampling greedy = plain(), two = plain(), half = plain();
  greedy.temperature = 0;
  two.top_k = 2;
  half.top_p = 0.5f;
  EXPECT_EQ(probabilities(greedy, logits), (Floats{0, 1, 0, 0, 0}));
  EXPECT_EQ(probabilities(two, logits), (Floats{0, 0.5f, 0.5f, 0, 0}));
  EXPECT_EQ(probabilities(half, logits), (Floats{0, 0.5f, 0.5f, 0, 0}));
}

TEST(Samplers, FindTheLargestLogitAnywhere) {
  Sampling greedy = plain();
  greedy.temperature = 0;
  const int64_t vocabulary = 150;  // two blocks of the search and a part of one
  for (const int64_t place : {0, 1, 63, 64, 127, 128, 149}) {
    Floats logits(static_cast<size_t>(vocabulary), -1.0f);
    logits[static_cast<size_t>(place)] = logits.back() = 3;
    EXPECT_EQ(Sampler(greedy)(logits.data(), vocabulary), place);
  }
}

TEST(Samplers, NeverDrawImpossibleTokens) {
  Sampler sample(plain());
  const Floats logits{-kInfinity, 0, -kInfinity, -1000, 0};
  for (int i = 0; i < 1000; ++i) {
    const int32_t token = sample(logits.data(), 5);
    EXPECT_TRUE(token == 1 || token == 4) << token;
  }
  Sampling coldest = plain(), greedy = plain();
  coldest.temperature = std::numeric_limits<float>::denorm_min();
  greedy.temperature = 0;
  EXPECT_EQ(probabilities(coldest, {1, 1.5f, 0}), (Floats{0, 1, 0}));
  EXPECT_EQ(probabilities(greedy, {-kInfinity, -5}), (Floats{0, 1}));
  EXPECT_EQ(probabilities(plain(), {3e38f, -3e38f}), (Floats{1, 0}));
}

TEST(Samplers, RefuseLogitsWithoutAFiniteMaximum) {
  for (const float temperature : {0.0f, 1.0f}) {
    Sampling options = plain();
    options.temperature = temperature;
    Sampler sample(options);
    const auto refused = [&](const Floats& logits, const char* text) {
      expect_error(ErrorKind::Failed, {"generate: ", text, "expected finite weights"},
                   [&] { sample(logits.data(), std::ssize(logits)); });
    };
    refused({0, NAN, 1}, "NaN");
    refused({-kInfinity, -kInfinity}, "-inf");
    refused({0, kInfinity}, "is inf");
  }
}

// Meister et al. 2023, section 4: the tokens with the smallest |surprisal - entropy| that together
// have the requested probability.
TEST(Samplers, ApplyTypicalSampling) {
  const Floats logits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  // The surprisals are 0.69, 1.20, 1.90 and 3.00, the entropy is 1.14: token 1 is closest, then 0.
  Sampling options = plain();
  options.typical_p = 0.2f;
  EXPECT_EQ(probabilities(options, logits), (Floats{0, 1, 0, 0}));
  options.typical_p = 0.6f;
  const Floats two = probabilities(options, logits);
  EXPECT_NEAR(two[0], 0.625f, 1e-6);
  EXPECT_NEAR(two[1], 0.375f, 1e-6);
  EXPECT_EQ(two[2] + two[3], 0);
}

// The finite logits have a standard deviation of 2; forbidden tokens do not count. The temperature
// and a large top-k do not change which tokens are kept.
TEST(Samplers, KeepTokensWithinStandardDeviations) {
  const Floats logits{5, 1, -kInfinity, 3, 1, -kInfinity, 3, 5, 1, 5, 3, 3, 5, 1, 3, 3, 7, -1};
  EXPECT_NEAR(least_logit(logits, 1), 5, 1e-12);
  Sampling options = plain();
  const auto kept = [&] {
    std::vector<size_t> tokens;
    const Floats p = probabilities(options, logits);
    for (size_t i = 0; i < p.size(); ++i)
      if (p[i] > 0) tokens.push_back(i);
    return tokens;
  };
  options.top_n_sigma = 1;
  EXPECT_EQ(kept(), (std::vector<size_t>{0, 7, 9, 12, 16})) << "5 is at the limit";
  options.temperature = 5;
  EXPECT_EQ(kept().size(), 5u);
  options.top_k = 3;
  EXPECT_EQ(kept(), (std::vector<size_t>{0, 7, 16}));
  options.top_k = 8;
  EXPECT_EQ(kept().size(), 5u);
  options.top_n_sigma = 0.5f;
  EXPECT_EQ(kept(), std::vector<size_t>{16});
  options.top_n_sigma = 100;
  options.top_k = 0;
  EXPECT_EQ(kept().size(), 16u);
  EXPECT_EQ(probabilities(options, {2, 2, 2, -kInfinity}),
            (Floats{1 / 3.0f, 1 / 3.0f, 1 / 3.0f, 0}));
  EXPECT_EQ(probabilities(options, {-kInfinity, -2}), (Floats{0, 1}));
}

TEST(Samplers, FindTheNucleusOfManyTokens) {
  Random random(2, Stream::init);
  Floats logits(5000);
  for (float& logit : logits) logit = random.normal();
  for (const float share : {0.01f, 0.5f, 0.99f}) {
    Sampling options = plain();
    options.top_p = share;
    const Floats actual = probabilities(options, logits);
    const std::vector<double> expected = exact(logits, options);
    for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-5) << i;
  }
}

TEST(Samplers, UseASeparateStreamPerSample) {
  const Floats logits(50, 0.0f);
  Sampler first(plain(), 0), second(plain(), 1), again(plain(), 1);
  std::vector<int32_t> a, b, c;
  for (int i = 0; i < 20; ++i) {
    a.push_back(first(logits.data(), 50));
    b.push_back(second(logits.data(), 50));
    c.push_back(again(logits.data(), 50));
  }
  EXPECT_NE(a, b);
  EXPECT_EQ(b, c);
}

TEST(Logprobs, EqualTheLogSoftmax) {
  const Floats logits{1, 3, 2, 3};
  const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  const TokenLogprob found = logprob_of(logits.data(), {4}, 2, 3);
  EXPECT_NEAR(found.logprob, 2 - std::log(sum), 1e-6);
  ASSERT_EQ(found.top.size(), 3u);
  EXPECT_EQ(found.top[0].first, 1);  // ties are ordered by id
  EXPECT_EQ(found.top[1].first, 3);
  EXPECT_EQ(found.top[2].first, 2);
  EXPECT_NEAR(found.top[0].second, 3 - std::log(sum), 1e-6);
}

TEST(Samplers, DrawTheSameTokensForASeedInAnyBatch) {
  const Floats logits(50, 0.0f), other{1, 2, 3};
  const auto draws = [&](uint64_t seed, bool company) {
    Sampling options = plain();
    options.seed = seed;
    Sampler sample(options), neighbour(options);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 100; ++i) {
      if (company) neighbour(other.data(), 3);
      // The n-th draw does not depend on the earlier distributions.
      if (i % 3 == 0) {
        sample(other.data(), 3);
      } else {
        tokens.push_back(sample(logits.data(), 50));
      }
    }
    return tokens;
  };
  EXPECT_EQ(draws(1, false), draws(1, true));
  EXPECT_NE(draws(1, false), draws(2, false));
}

}  // namespace
}  // namespace fovea::infer
