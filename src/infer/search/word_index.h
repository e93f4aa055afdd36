#pragma once

// Finds passages by the words that they share with a query: BM25 (Robertson and Zaragoza 2009, The
// Probabilistic Relevance Framework, section 3.4).

#include <string>
#include <string_view>
#include <vector>

#include "search/posting_lists.h"

namespace fovea::infer {

// Returns the words of a text in lower case: runs of letters, numbers and marks. A character of a
// script without spaces between words (Han, Hiragana, Katakana) is a word.
std::vector<std::string> words_in(std::string_view text);

class WordIndex {
 public:
  // The weight of a word with `tf` occurrences in a passage of `length` words:
  //   log(1 + (N - n + 1/2) / (n + 1/2)) * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))
  // for N passages, n of which contain the word. The logarithm is Lucene's, which is positive.
  static constexpr double k1 = 1.2, b = 0.75;

  explicit WordIndex(const std::vector<std::string_view>& passages);
  // Reads the tensors of a file; see PostingLists.
  WordIndex(const SafeTensors& file, const std::string& path, int64_t passages);

  std::map<std::string, Tensor> tensors() const;
  // Returns at most `count` of the passages that contain a word of the query, best first.
  std::vector<ScoredPassage> best(std::string_view query, int64_t count) const;

 private:
  explicit WordIndex(const std::vector<std::vector<std::string>>& words_of_passages);

  std::vector<std::string> words_;  // ascending
  PostingLists lists_;
};

}  // namespace fovea::infer
