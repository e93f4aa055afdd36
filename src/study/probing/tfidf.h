#pragma once

// TF-IDF features as scikit-learn's TfidfVectorizer computes them by default.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "probing/features.h"

namespace fovea::study {

// Returns the words of a text in lower case: at least two letters, digits or underscores in a row.
std::vector<std::string> lower_words(std::string_view text);

// The numbers of each text's words, which begin at 0 and follow the order of first occurrence.
class WordCounts {
 public:
  explicit WordCounts(const std::vector<std::string>& texts);

  // Returns TF-IDF features of all texts, or of pairs of adjacent texts (see pair_features()), with
  // the document frequencies of those with indices `training`: count * (1 + log((1 + n) / (1 +
  // texts with the word))), scaled to unit length. Words that occur in no training text are left
  // out. If `pairs` is true, the indices are those of pairs.
  Features features(const std::vector<int32_t>& training, bool pairs) const;

 private:
  struct Word {
    int32_t number, count;
  };
  std::vector<std::vector<Word>> texts_;  // sorted by number
  int64_t words_ = 0;

  std::vector<double> inverse_frequencies(const std::vector<int32_t>& training, bool pairs) const;
  std::vector<Features::Element> row(size_t text, const std::vector<double>& idf) const;
};

}  // namespace fovea::study
