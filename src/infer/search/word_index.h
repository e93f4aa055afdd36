#pragma once

// Finds passages by the words that they share with a query: BM25 (Robertson and Zaragoza 2009, The
// Probabilistic Relevance Framework, section 3.4).

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors/safetensors.h"
#include "search/posting_lists.h"
#include "search/stored_array.h"

namespace fovea::infer {

// Returns the words of a text in lower case: runs of letters, numbers and marks. A character of a
// script without spaces between words (Han, Hiragana, Katakana) is a word.
std::vector<std::string> words_in(std::string_view text);

// For each word of the texts of a part of an index, the rows of the texts with it, and how often
// each has it.
class WordIndex {
 public:
  explicit WordIndex(std::span<const std::string_view> texts);
  // Reads the tensors of a file, which stays mapped. Throws BadFile unless they are those of `rows`
  // texts.
  WordIndex(const SafeTensors& file, const std::string& path, int64_t rows);

  std::map<std::string, Tensor> tensors() const;  // to write a file
  // The number of words of each text.
  std::span<const int32_t> lengths() const { return lengths_.all(); }

  struct Occurrences {
    std::span<const int32_t> rows, counts;  // rows ascending
  };
  Occurrences of(std::string_view word) const;  // empty if no text has it

 private:
  std::string_view word(int64_t index) const;
  void find_words(const std::string& path);

  StoredArray<uint8_t> text_;           // the words, ascending, each with a line break
  StoredArray<int64_t> starts_;         // [words + 1]: word w has [starts[w], starts[w + 1])
  StoredArray<int32_t> rows_, counts_;  // of these entries
  StoredArray<int32_t> lengths_;        // [N]
  std::vector<int64_t> at_;             // where each word begins in the text, and its end
};

// The words of a part, and the numbers of the passages of its rows: `all` for the statistics, and
// `numbers` of those that are searched; -1 = none.
struct WordPart {
  const WordIndex* words;
  std::span<const int32_t> all, numbers;
};

// The weight of a word with `tf` occurrences in a passage of `length` words:
//   log(1 + (N - n + 1/2) / (n + 1/2)) * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))
// for N passages, n of which contain the word. The logarithm is Lucene's, which is positive.
struct Bm25 {
  static constexpr double k1 = 1.2, b = 0.75;
};

// Returns at most `count` of the searched passages that contain a word of the query, sorted by
// descending score, then by number. The result does not depend on the division into parts.
std::vector<ScoredPassage> best_by_words(std::span<const WordPart> parts, std::string_view query,
                                         int64_t count);

}  // namespace fovea::infer
