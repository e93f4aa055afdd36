#pragma once

// A data set of retrieval by the layout of BEIR (Thakur et al. 2021, arXiv:2104.08663).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fovea::infer {

struct RetrievalText {
  std::string id, text;
};

struct RetrievalQuery {
  std::string id, text;
  std::map<std::string, int64_t> relevance;  // of the judged documents, by their ids
};

struct RetrievalSet {
  std::vector<RetrievalQuery> queries;  // those with judgements
  std::vector<RetrievalText> documents;
  int64_t unjudged = 0;  // queries without judgements, which are left out
  int64_t missing = 0;   // judgements of documents that the corpus lacks
};

// Reads queries (_id, text), documents (_id, text, optionally title, which precedes the text) and
// judgements (query-id, corpus-id, score), from files of each_named_record(). Throws BadFile,
// naming the line, if an id is missing or occurs twice, if a judgement is of an unknown query, is
// repeated or is not an integer; and if there is no document or no judgement.
RetrievalSet read_retrieval_set(const std::string& queries, const std::string& corpus,
                                const std::string& judgements);

}  // namespace fovea::infer
