#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/estimate.h"
#include "fovea/infer/retrieval.h"

namespace fovea::infer {

// Evaluation of a model that retrieves documents, as by BEIR (Thakur et al. 2021) and trec_eval.
struct RetrievalData {
  // Three files with the layout of BEIR, as JSON lines, tables with names, or Parquet: queries
  // (_id, text), documents (_id, text, optionally title, which precedes the text) and judgements
  // (query-id, corpus-id, score: an integer, of which positive ones mean that the document is
  // relevant to the query).
  std::vector<std::string> files;
  int64_t depth = 0;  // documents found for each query; 0 = 1000, or 100 with `reranker`
  std::vector<int64_t> cutoffs = {1, 10, 100};  // evaluate the first k documents, for each k
  std::string run_out;       // write the ranked documents to this file, in the format of trec_eval
  int64_t bootstrap = 1000;  // samples of the intervals
  uint64_t seed = 1337;      // of the intervals
  // Returns a score of each text for a query, by which the documents found are sorted; empty = they
  // are sorted by the similarity of vectors.
  std::function<std::vector<float>(const std::string& query, const std::vector<std::string>& texts)>
      reranker = {};
};
void visit(RetrievalData& data, OptionVisitor& visitor);  // fovea/core/options.h

struct RetrievalEvaluation {
  int64_t queries = 0;  // those with judgements
  int64_t documents = 0;
  // The means over the queries of the metrics of trec_eval, from 0 to 1: for each cutoff k
  // "ndcg_at_k", "map_at_k", "recall_at_k", "precision_at_k", "mrr_at_k", and "map" of all
  // documents found. A query without relevant documents has 0.
  std::vector<std::pair<std::string, Estimate>> metrics;
  std::vector<std::string> notes;  // messages, such as the number of queries without judgements
};

// Compares each query with all documents, by vectors with the model's prompts for queries and
// documents. The result does not depend on the number of threads. Documents with equal scores are
// in the order of trec_eval, by descending id; a document with the id of the query is left out.
// `progress` receives the completed fraction, on the caller's thread; return false to stop, which
// throws Failed. Throws InvalidArgument if an option is out of range, BadFile, with the line, if a
// file is malformed, Unsupported if a sparse model compares vectors by a distance, and the errors
// of Embedder::embed().
using RetrievalProgress = std::function<bool(double fraction)>;
RetrievalEvaluation evaluate_retrieval(const Embedder& model, const RetrievalData& data,
                                       const RetrievalProgress& progress = {});
RetrievalEvaluation evaluate_retrieval(const SparseEmbedder& model, const RetrievalData& data,
                                       const RetrievalProgress& progress = {});
RetrievalEvaluation evaluate_retrieval(const MultiVectorEmbedder& model, const RetrievalData& data,
                                       const RetrievalProgress& progress = {});

}  // namespace fovea::infer
