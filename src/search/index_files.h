#pragma once

// The folder of a search index: index.json (the settings, and hashes of the others),
// passages.jsonl and graph.hnsw.

#include <string>
#include <vector>

#include "search/vector_graph.h"

namespace fovea {

struct IndexSettings {
  std::string folder;       // that was read
  std::string model;        // its directory
  std::string fingerprint;  // of everything that decides its vectors
  int64_t width = 0;
  Similarity similarity = Similarity::cosine;
};

struct IndexedPassage {
  std::string file;  // below the folder
  int64_t line = 0, last_line = 0;
  std::string text;
};

struct IndexFiles {
  IndexSettings settings;
  std::vector<IndexedPassage> passages;
  VectorGraph graph;
};

// The whole folder appears at once, in place of an older index; InvalidArgument where something
// else has that name.
void write_index(const std::string& path, const IndexFiles& index);

// BadFile, with the file, for what is missing or damaged.
IndexFiles read_index(const std::string& path);

// Whether there is an index of this name; InvalidArgument where something else has it.
bool is_index(const std::string& path);

}  // namespace fovea
