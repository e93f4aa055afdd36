#pragma once

// The files of a search index. index.json has the settings and names the parts, each a folder that
// is written once: passages.jsonl, passages.safetensors, words.safetensors, and the vectors. A
// change writes new parts and then replaces index.json, so that an index is complete at any time.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/files.h"
#include "embed/vector_kind.h"
#include "fovea/infer/search.h"
#include "search/dense_vectors.h"
#include "search/passage_table.h"
#include "search/passage_token_vectors.h"
#include "search/posting_lists.h"
#include "search/vector_graph.h"
#include "search/word_index.h"

namespace fovea::infer {

struct IndexSettings {
  std::string folder;       // the indexed folder
  std::string model;        // the model's directory
  std::string fingerprint;  // hash of everything that affects the vectors
  int64_t width = 0;
  Similarity similarity = Similarity::cosine;
  VectorKind kind = VectorKind::dense;
  VectorPrecision precision = VectorPrecision::float32;  // of dense vectors
  int64_t passage_tokens = 0, overlap_tokens = 0;        // as cut_passages() received them
  std::vector<GraphRecall> recall = {};                  // of the graphs; empty: there are none
};

// A part as index.json describes it.
struct PartEntry {
  std::string name;                  // of its folder: "1", "2", ...
  std::vector<std::string> deleted;  // files whose passages are no longer in the index, ascending
  std::map<std::string, std::string> hashes = {};  // of its files, by their names
};

struct IndexDescription {
  IndexSettings settings;
  std::vector<PartEntry> parts;
};

// The vectors of a part; the alternatives are in the order of VectorKind.
using IndexedVectors = std::variant<DenseVectors, PostingLists, PassageTokenVectors>;

struct PartContents {
  std::vector<IndexedPassage> passages;  // by ascending files and lines
  TextRows rows;
  std::vector<uint64_t> groups;              // of each row; see group_of()
  std::map<std::string, std::string> dates;  // of the files
  IndexedVectors vectors;
  WordIndex words;
  std::optional<VectorGraph> graph = {};
};

namespace index_file {
inline constexpr const char *kDescription = "index.json", *kPassages = "passages.jsonl",
                            *kTable = "passages.safetensors", *kWords = "words.safetensors",
                            *kGraph = "graph.hnsw";
const char* vectors(VectorKind kind);  // vectors.safetensors, sparse.... or tokens....
}  // namespace index_file

// Throws BadFile, naming the file, if it is missing or damaged, and Unsupported if the index has a
// different version.
IndexDescription read_description(const std::string& path);

// Returns whether an index exists at `path`. Throws InvalidArgument if `path` is a file, or a
// folder that is neither an index, nor empty, nor an index that was never completed.
bool is_index(const std::string& path);

[[noreturn]] void refuse_damage(const std::string& file);

// Changes an index, or makes a new one. One writer at a time holds an index; other processes may
// read it. Without commit(), the index is unchanged, and the parts that were written are removed.
class IndexWriter {
 public:
  // Throws Failed if another process writes the index, and the errors of is_index().
  explicit IndexWriter(const std::string& path);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  PartEntry write(const PartContents& part);  // a new part
  // Replaces index.json in a single step, and removes the parts that it does not name.
  void commit(const IndexDescription& index);

 private:
  void remove_parts_except(const std::vector<PartEntry>& parts) const;

  std::string path_;
  bool is_new_, committed_ = false;
  std::unique_ptr<DirectoryLock> lock_;
  std::vector<PartEntry> written_;
  int64_t next_ = 1;  // the name of the next part
};

}  // namespace fovea::infer
