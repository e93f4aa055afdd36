#pragma once

// Metrics of ranked documents, as trec_eval computes them.

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::infer {

struct RankedDocument {
  std::string_view id;
  float score = 0;
};
// The order of trec_eval: by descending score, then by descending id.
bool ranks_before(const RankedDocument& a, const RankedDocument& b);

// The relevance of the documents found for a query, in their order, and that of all judged
// documents. A document is relevant if the number is positive; one that is not judged has 0.
struct JudgedRanking {
  std::vector<int64_t> found, judged;

  int64_t relevant() const;  // number of relevant documents
};

// The metrics of the first k documents; 0 if no document is relevant.
// Gain: the sum of relevance / log2(rank + 1), divided by that of the best order (Jarvelin and
// Kekalainen 2002).
double normalised_gain(const JudgedRanking& ranking, int64_t k);
// The sum of the precision at the rank of each relevant document, divided by the number of relevant
// documents.
double average_precision_at(const JudgedRanking& ranking, int64_t k);
double recall_at(const JudgedRanking& ranking, int64_t k);
double precision_at(const JudgedRanking& ranking, int64_t k);     // of k, also if fewer were found
double reciprocal_rank(const JudgedRanking& ranking, int64_t k);  // of the first relevant document

}  // namespace fovea::infer
