#pragma once

// Makes the parts of an index from passages, a bounded number of which are in memory.

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "search/documents.h"
#include "search/passage_vectors.h"

namespace fovea::infer {

// The vectors of an existing index by the texts of its passages, for reuse. Empty if the index is
// damaged or was built with another model or other vectors.
class KnownVectors {
 public:
  KnownVectors(const std::string& path, const IndexSettings& settings);
  // Copies the vector of a text to row `row`; returns false if the text has no vector.
  bool lend(const std::string& text, int64_t row, PassageVectors& vectors) const;

 private:
  std::optional<IndexContents> index_;
  std::optional<StoredVectors> vectors_;
  std::unordered_map<uint64_t, IndexContents::Location> locations_;  // by the hashes of texts
};

class PartMaker {
 public:
  // `known` and `writer` may be null: without a writer, one is made when the first part is
  // complete.
  PartMaker(const std::string& path, const IndexSettings& settings, const PassageModel& model,
            const KnownVectors* known, const SearchBuildOptions& options, SearchBuild& result,
            IndexWriter* writer = nullptr);

  // Adds the passages of a file; files are added in ascending order.
  void add(const std::string& folder, const std::string& file);
  // Ends the work of the other ranks. Returns the parts.
  std::vector<PartEntry> finish();
  IndexWriter& writer();

 private:
  void write();
  IndexedVectors vectors_of(const std::vector<IndexedPassage>& passages, const TextRows& rows);

  std::string path_;
  const IndexSettings& settings_;
  const PassageModel& model_;
  const KnownVectors* known_;
  const SearchBuildOptions& options_;
  SearchBuild& result_;
  DocumentReader reader_;
  IndexWriter* given_writer_;
  std::optional<IndexWriter> own_writer_;
  std::vector<IndexedPassage> passages_;
  std::map<std::string, std::string> dates_;
  std::unordered_set<uint64_t> groups_;
  int64_t embedded_ = 0, to_embed_ = 0;  // vectors so far
  std::vector<PartEntry> parts_;
};

// Writes parts with all passages of some parts of an index, without computing vectors.
std::vector<PartEntry> merge_parts(const IndexContents& index, const std::vector<char>& merged,
                                   int64_t part_passages, IndexWriter& writer);

// Measures searches in the graphs of the parts with several numbers of candidates.
std::vector<GraphRecall> measure_recall(const std::string& path, const IndexDescription& index);

}  // namespace fovea::infer
