#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fovea {

struct SearchBuildOptions {
  int64_t passage_tokens = 0;   // most tokens of a passage; 0 = the model's limit, at most 256
  int64_t overlap_tokens = -1;  // repeated where a paragraph is cut; -1 = an eighth of a passage
  // Returns false to stop.
  std::function<bool(int64_t embedded, int64_t passages)> progress;
};

struct SearchBuild {
  int64_t files = 0;
  std::vector<std::string> skipped;    // files that are no text
  std::vector<std::string> links_out;  // links that lead out of the folder: not followed
  int64_t passages = 0;
  int64_t embedded = 0;  // passages that the older index did not have
};

// Cuts the text files of a folder (and those below it; names that begin with a dot are left out)
// into passages and writes an index of their vectors. An index of the same model that is there
// already lends the vectors of unchanged passages. It appears whole or not at all.
SearchBuild build_search_index(const std::string& folder, const std::string& model,
                               const std::string& index, const SearchBuildOptions& options = {});

struct FoundPassage {
  std::string file;  // below the folder
  int64_t line = 0, last_line = 0;
  std::string text;
  float score = 0;  // the similarity of the vectors
};

// A word of the query and the word of the passage whose vector is the most alike.
struct WordMatch {
  std::string query, passage;
  int64_t line = 0;  // of the file
  float similarity = 0;
};

// Cheap to copy; safe to use from several threads at a time.
class SearchIndex {
 public:
  // BadFile for a damaged index; InvalidArgument where the model is another one than it was built
  // with. `model` empty: the directory that the index names.
  static SearchIndex open(const std::string& index, const std::string& model = "",
                          std::vector<std::string>* warnings = nullptr);

  // The passages nearest to the query, the best first.
  std::vector<FoundPassage> search(const std::string& query, int64_t count) const;
  std::vector<WordMatch> explain(const std::string& query, const FoundPassage& passage) const;
  const std::string& folder() const;
  int64_t passages() const;

 private:
  struct Parts;
  explicit SearchIndex(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace fovea
