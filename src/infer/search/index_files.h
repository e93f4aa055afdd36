#pragma once

// The files of a search index: index.json (the settings, and hashes of the other files),
// passages.jsonl, words.safetensors, and the vectors: graph.hnsw, sparse.safetensors or
// tokens.safetensors.

#include <string>
#include <variant>
#include <vector>

#include "embed/vector_kind.h"
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
};

struct IndexedPassage {
  std::string file;  // path relative to the indexed folder
  int64_t line = 0, last_line = 0;
  std::string text;
};

// The vectors of all passages; the alternatives are in the order of VectorKind.
using IndexedVectors = std::variant<VectorGraph, PostingLists, PassageTokenVectors>;

struct IndexFiles {
  IndexSettings settings;
  std::vector<IndexedPassage> passages;
  IndexedVectors vectors;  // of the kind that the settings name
  WordIndex words;

  // Throw std::bad_variant_access for the other kinds.
  const VectorGraph& graph() const { return std::get<VectorGraph>(vectors); }
  const PostingLists& sparse() const { return std::get<PostingLists>(vectors); }
  const PassageTokenVectors& tokens() const { return std::get<PassageTokenVectors>(vectors); }
};

// Writes the index atomically; replaces an older one. Throws InvalidArgument if `path` is a file,
// or a folder that is neither an index nor empty.
void write_index(const std::string& path, const IndexFiles& index);

// Reads an index. Throws BadFile, naming the file, if a file is missing or damaged, and Unsupported
// if the index has a different version.
IndexFiles read_index(const std::string& path);

// Returns whether an index exists at `path`. Throws InvalidArgument if `path` is a file, or a
// folder that is neither an index nor empty.
bool is_index(const std::string& path);

}  // namespace fovea::infer
