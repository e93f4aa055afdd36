#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/embed.h"

namespace fovea {
class Communicator;
}

namespace fovea::infer {

// The vectors of an index. automatic: those that the model's files say. A model with several, such
// as BGE-M3, has dense ones by default.
enum class IndexedKind { automatic, dense, sparse, tokens };

struct SearchBuildOptions {
  int64_t passage_tokens = 0;  // maximum per passage; 0 = 256, or what fits into the model
  // Maximum tokens that adjacent passages of a long paragraph share; -1 = an eighth of a passage.
  int64_t overlap_tokens = -1;
  IndexedKind kind = IndexedKind::automatic;
  // The form of dense vectors: float32, int8 (a byte for each element, a quarter of the size), or
  // binary (a bit for each, by which the best passages are found, and the bytes, by which they are
  // compared again). The last two need a model that compares by cosine or dot product.
  VectorPrecision vectors = VectorPrecision::float32;
  // Also build a graph (HNSW: Malkov and Yashunin 2018, arXiv:1603.09320), for searches with
  // `graph_candidates`; only for dense vectors of float32.
  bool graph = false;
  // Passages that are held in memory at a time; each part of the index has at most as many.
  int64_t part_passages = int64_t{1} << 17;
  // Receives the number of embedded passages and the number of passages to embed so far, on the
  // caller's thread; return false to stop.
  std::function<bool(int64_t embedded, int64_t passages)> progress = {};
  // The processes of a job that compute the vectors together; rank 0 reads the folder and writes
  // the index, and the others return nothing. null = this process alone.
  Communicator* ranks = nullptr;
};
void visit(SearchBuildOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

// How well searches in the graphs of an index work.
struct GraphRecall {
  int64_t candidates = 0;  // as in SearchOptions
  double recall = 0;       // the mean share of the 10 nearest passages that they find
};

struct SearchBuild {
  int64_t files = 0;                 // files that were read
  std::vector<std::string> skipped;  // files that are not text, or exceed 64 MiB
  std::vector<std::string>
      unread;  // for each file that no program could read: a line that says why
  std::vector<std::string> links_out;  // symbolic links that lead out of the folder; not followed
  int64_t passages = 0;                // with different texts
  int64_t duplicates = 0;  // further passages with the text of another, except for white space
  int64_t embedded = 0;    // passages whose vector was computed, not reused
  int64_t cut = 0;         // number of embedded passages that were truncated to `limit` tokens
  std::string first_cut;   // the location of the first of them: "notes.txt: line 3"
  int64_t limit = 0;       // the model's maximum tokens, special tokens and prompt included
  std::vector<GraphRecall> recall;  // of the graph, on passages of the index as queries
};

// Splits the text files in `folder` and its subfolders into passages and writes an index of their
// words and of their vectors, as the model computes them: one dense or sparse vector for each
// passage, or one for each of its tokens. Names that begin with a dot are skipped. PDF, HTML and
// DOCX files are read by programs (pdftotext, html2text, docx2txt), if they are installed; the rows
// of .jsonl files with a "text" are separate texts. Passages with equal texts are found once. If
// `index` exists and was built with the same model, the vectors of unchanged passages are reused.
// The index is replaced in a single step. Throws BadFile if there is no text, InvalidArgument if
// `index` exists and is not an index, Unsupported if the model compares vectors by Manhattan
// distance or if `vectors` or `graph` does not fit the model, Failed if `progress` returned false,
// another process changes the index or it cannot be written, and the errors of Embedder::open().
SearchBuild build_search_index(const std::string& folder, const std::string& model,
                               const std::string& index, const SearchBuildOptions& options = {});

// Adds files to an index, or replaces their passages, without reading the others. `files`: files
// and folders below the indexed folder, absolute or relative to it. `model`: as in
// SearchIndex::open(). A search finds the same passages with the same scores as in an index that
// was built from the texts anew, except by the graph, which has only those of the last build. Of
// the options, `progress` and `part_passages` are used. The result counts the passages of these
// files. Throws InvalidArgument if a file is not below the folder, and the errors of
// build_search_index().
SearchBuild add_to_search_index(const std::string& index, const std::vector<std::string>& files,
                                const std::string& model = "",
                                const SearchBuildOptions& options = {});

// Removes files from an index, given as for add_to_search_index(); they need not exist any more.
// Returns the number of removed files. Throws InvalidArgument, naming it, if a path is neither an
// indexed file nor a folder of such files, and Failed as build_search_index() does.
int64_t delete_from_search_index(const std::string& index, const std::vector<std::string>& files);

struct FoundPassage {
  std::string file;                 // path relative to the indexed folder
  int64_t line = 0, last_line = 0;  // first and last line in the file, from 1
  std::string text;
  float score = 0;  // by which passages are sorted: the similarity, or the score of a hybrid search
  float similarity = 0;  // of the vectors of query and passage
  std::string fields;    // of the record in a .jsonl file: a JSON object; empty: it is no record
};

struct SearchOptions {
  // Combine the search by vectors with one by words (BM25: Robertson and Zaragoza 2009). The score
  // of a passage is the sum over both of 1 / (60 + rank) (Cormack et al. 2009).
  bool hybrid = false;
  // Conditions that all passages found fulfil: NAME=VALUE, or with != < <= > >=. NAME is `file`,
  // the path in the folder (VALUE: a pattern with *, ** and ?), `date`, that of the record or of
  // the file's last change (VALUE: the beginning of a date such as 2026-01-31T23:59:59Z), or a
  // field of the passage's record. The search compares only these passages, so that it finds their
  // best.
  std::vector<std::string> where = {};
  // Search in the graph, with this many candidates, instead of comparing the query with all
  // passages; 0 = compare with all.
  int64_t graph_candidates = 0;
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
  // sparse vectors, only passages that share an element with the query. Throws InvalidArgument if a
  // condition is malformed or there is no graph to search in, and the errors of Embedder::embed().
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
  int64_t passages() const;                          // number of different passages

 private:
  struct Parts;
  explicit SearchIndex(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace fovea::infer
