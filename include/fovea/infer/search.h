#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/core/options.h"

namespace fovea {
class Communicator;
}

namespace fovea::infer {

struct SearchBuildOptions {
  int64_t passage_tokens = 0;  // maximum per passage; 0 = 256, or what fits into the model
  // Maximum tokens that adjacent passages of a long paragraph share; -1 = an eighth of a passage.
  int64_t overlap_tokens = -1;
  // Receives the number of embedded passages and the number of passages to embed, on the caller's
  // thread; return false to stop.
  std::function<bool(int64_t embedded, int64_t passages)> progress = {};
  // The processes of a job that compute the vectors together; rank 0 reads the folder and writes
  // the index, and the others return nothing. null = this process alone.
  Communicator* ranks = nullptr;
};
void visit(SearchBuildOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct SearchBuild {
  int64_t files = 0;                   // text files that were read
  std::vector<std::string> skipped;    // files that are not text, or exceed 64 MiB
  std::vector<std::string> links_out;  // symbolic links that lead out of the folder; not followed
  int64_t passages = 0;
  int64_t embedded = 0;   // passages whose vector was computed, not reused
  int64_t cut = 0;        // number of embedded passages that were truncated to `limit` tokens
  std::string first_cut;  // the location of the first of them: "notes.txt: line 3"
  int64_t limit = 0;      // the model's maximum tokens, special tokens and prompt included
};

// Splits the text files in `folder` and its subfolders into passages and writes an index of their
// words and of their vectors, as the model computes them: one dense or sparse vector for each
// passage, or one for each of its tokens. Names that begin with a dot are skipped. If `index`
// exists and was built with the same model, the vectors of unchanged passages are reused. The index
// is written atomically. Throws BadFile if there is no text, InvalidArgument if `index` exists and
// is not an index, Unsupported if the model compares vectors by Manhattan distance, Failed if
// `progress` returned false or the index cannot be written, and the errors of Embedder::open().
SearchBuild build_search_index(const std::string& folder, const std::string& model,
                               const std::string& index, const SearchBuildOptions& options = {});

struct FoundPassage {
  std::string file;                 // path relative to the indexed folder
  int64_t line = 0, last_line = 0;  // first and last line in the file, from 1
  std::string text;
  float score = 0;  // by which passages are sorted: the similarity, or the score of a hybrid search
  float similarity = 0;  // of the vectors of query and passage
};

struct SearchOptions {
  // Combine the search by vectors with one by words (BM25: Robertson and Zaragoza 2009). The score
  // of a passage is the sum over both of 1 / (60 + rank) (Cormack et al. 2009).
  bool hybrid = false;
};
void visit(SearchOptions& options, OptionVisitor& visitor);

struct ClusterOptions {
  int64_t clusters = 8;
  int64_t typical = 3;  // maximum passages that represent a cluster
  uint64_t seed = 0;    // of the first centroids
};
void visit(ClusterOptions& options, OptionVisitor& visitor);

// Passages of similar meaning.
struct PassageCluster {
  int64_t passages = 0;
  float cohesion = 0;                 // the mean cosine of the passages' vectors and their centroid
  std::vector<FoundPassage> typical;  // closest to the centroid; the score is the cosine
};

// A word of the query and the most similar word of the passage, by cosine similarity.
struct WordMatch {
  std::string query, passage;
  int64_t line = 0;  // line of the passage's word in the file
  float similarity = 0;
};

// An opened index, with its model. Cheap to copy; safe to use from several threads. References that
// its functions return are valid as long as a copy exists.
class SearchIndex {
 public:
  // Opens an index with the model in the directory `model`; empty: the directory that the index
  // names. Throws BadFile if the index is damaged, Unsupported if it has a different version,
  // InvalidArgument if it was built with a different model, and the errors of Embedder::open().
  static SearchIndex open(const std::string& index, const std::string& model = "");

  // Returns the `count` best passages for the query, best first, or all if there are fewer; with
  // sparse vectors, only passages that share an element with the query. Throws the errors of
  // Embedder::embed().
  std::vector<FoundPassage> search(const std::string& query, int64_t count,
                                   const SearchOptions& options = {}) const;
  // Groups the passages by the directions of their vectors (spherical k-means), the largest group
  // first. Throws InvalidArgument if there are fewer passages than clusters, and Unsupported unless
  // the index has one dense vector for each passage.
  std::vector<PassageCluster> cluster(const ClusterOptions& options = {}) const;
  // Returns the best match of each word of the query. Throws the errors of
  // Embedder::embed_tokens(), and Unsupported if the vectors are sparse.
  std::vector<WordMatch> explain(const std::string& query, const FoundPassage& passage) const;
  const std::vector<std::string>& warnings() const;  // of the model; see Model::warnings()
  const std::string& folder() const;                 // the indexed folder
  int64_t passages() const;                          // number of passages

 private:
  struct Parts;
  explicit SearchIndex(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace fovea::infer
