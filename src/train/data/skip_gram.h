#pragma once

// Pairs of neighbouring tokens with random other tokens: the data of skip-gram with negative
// sampling (Mikolov et al. 2013, arXiv:1310.4546).

#include <cstdint>
#include <vector>

namespace fovea::train {

struct SkipGramOptions {
  int64_t neighbours = 5, negatives = 5;
  double subsampling = 1e-3;  // 0 = no token is left out
};

struct SkipGramPairs {
  std::vector<int32_t> tokens;  // [N]
  std::vector<int32_t> others;  // [N, 1 + negatives]: a neighbour, and random tokens
};

class SkipGram {
 public:
  // `counts`: how often each token occurs in the text.
  SkipGram(const SkipGramOptions& options, const std::vector<int64_t>& counts);

  // Adds the pairs of window ids [count], at least one if it has two tokens; a pure function of the
  // seed and the window's number. A token of frequency f stays with the probability sqrt(t / f)
  // (eq. 5), t = `subsampling`; those that stay become neighbours. The largest distance of a
  // token's neighbours is drawn from 1 to `neighbours`. Random tokens have the probabilities
  // count^(3/4) / sum (section 2.2); one that equals the neighbour is drawn again.
  void add_pairs(uint64_t seed, int64_t window, const int32_t* ids, int64_t count,
                 SkipGramPairs& pairs) const;

 private:
  SkipGramOptions options_;
  std::vector<double> stays_;       // the probability that a token stays
  std::vector<double> cumulative_;  // sums of count^(3/4)
};

}  // namespace fovea::train
