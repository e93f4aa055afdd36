#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/embed.h"

namespace fovea::infer {

// Hard negatives of pairs: texts that are similar to the anchor but no positives of it, found as by
// mine_hard_negatives() of sentence-transformers.
enum class NegativeSampling { top, random };
struct MiningOptions {
  // File of pairs of related texts, as for training an embedder; an anchor may be in several pairs.
  // Of triplets, only the anchors and the positives are read.
  std::string pairs;
  int64_t negatives = 3;  // of each pair; a pair with fewer is left out
  // Candidates are ranked by descending score, after the positives and those beyond the margins or
  // `max_score` are left out. Negatives are chosen among those of the ranks [range_min, range_max).
  int64_t range_min = 0;
  // 0 = range_min + negatives, or 10 times as many with a margin or `max_score`, and as many more
  // as an anchor has positives at most. So many candidates are scored, besides the positives.
  int64_t range_max = 0;
  // With p, the lowest score of a positive of the anchor, candidates with scores s are left out:
  std::optional<double> margin;                       // if s + margin > p
  std::optional<double> relative_margin;              // if s > p - relative_margin * |p|
  std::optional<double> max_score;                    // if s > max_score
  NegativeSampling sampling = NegativeSampling::top;  // top: those with the highest scores
  uint64_t seed = 1337;                               // of a random choice
  // Texts that may become negatives, besides the positives of all pairs.
  std::vector<std::string> corpus;
  // Returns a score of each text for an anchor, which takes the place of the cosine of the vectors;
  // it is the teacher of a distillation. Empty = none.
  std::function<std::vector<float>(const std::string& query, const std::vector<std::string>& texts)>
      reranker = {};
};
void visit(MiningOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct MinedPair {
  std::string anchor, positive;
  std::vector<std::string> negatives;  // by descending score
  std::vector<float> scores;           // of the positive and of the negatives
};
struct MinedNegatives {
  std::vector<MinedPair> pairs;  // those with enough negatives, by anchors in the order of the file
  int64_t incomplete = 0;        // pairs with too few negatives
  // Numbers of candidates that were left out by each limit.
  int64_t by_margin = 0, by_relative_margin = 0, by_max_score = 0;
};
// Compares the anchors with all texts by the cosines of their vectors, which have the model's
// prompts for queries and documents. Texts with equal scores are in the order of the corpus, the
// positives last; the result does not depend on the number of threads. `progress` receives the
// completed fraction; return false to stop, which throws Failed. Throws InvalidArgument if an
// option is out of range, BadFile, with the record, if the file is malformed or has no pairs, and
// the errors of Embedder::embed().
MinedNegatives mine_negatives(const Embedder& model, const MiningOptions& options,
                              const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea::infer
