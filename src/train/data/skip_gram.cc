#include "data/skip_gram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/math.h"
#include "fovea/core/random.h"

namespace fovea::train {
namespace {

constexpr uint32_t kSubstream = 20;  // of Stream::shuffle
constexpr int kMostDraws = 16;       // of a random token that differs from the neighbour

}  // namespace

SkipGram::SkipGram(const SkipGramOptions& options, const std::vector<int64_t>& counts)
    : options_(options) {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double sum = 0;
  for (const int64_t count : counts) {
    const auto n = static_cast<double>(count);
    const double t = options.subsampling * all;
    stays_.push_back(t <= 0 || n <= t ? 1 : std::sqrt(t / n));
    cumulative_.push_back(sum += count > 0 ? math::pow(n, 0.75) : 0);
  }
}

void SkipGram::add_pairs(uint64_t seed, int64_t window, const int32_t* ids, int64_t count,
                         SkipGramPairs& pairs) const {
  const auto words = philox(seed, Stream::shuffle, kSubstream, static_cast<uint64_t>(window));
  Random random(uint64_t{words[0]} << 32 | words[1], Stream::shuffle, kSubstream);
  std::vector<int32_t> kept;
  for (int64_t i = 0; i < count; ++i)
    if (random.uniform_double() < stays_[static_cast<size_t>(ids[i])]) kept.push_back(ids[i]);
  if (kept.size() < 2) kept.assign(ids, ids + std::min<int64_t>(2, count));
  const int64_t n = std::ssize(kept);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t reach =
        1 + static_cast<int64_t>(random.word() % static_cast<uint64_t>(options_.neighbours));
    for (int64_t j = std::max<int64_t>(0, i - reach); j <= std::min(n - 1, i + reach); ++j) {
      if (j == i) continue;
      const int32_t neighbour = kept[static_cast<size_t>(j)];
      pairs.tokens.push_back(kept[static_cast<size_t>(i)]);
      pairs.others.push_back(neighbour);
      for (int64_t k = 0; k < options_.negatives; ++k) {
        int32_t other = neighbour;
        for (int draw = 0; draw < kMostDraws && other == neighbour; ++draw) {
          const double drawn = random.uniform_double() * cumulative_.back();
          const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, drawn);
          other = static_cast<int32_t>(found - cumulative_.begin());
        }
        pairs.others.push_back(other);
      }
    }
  }
}

}  // namespace fovea::train
