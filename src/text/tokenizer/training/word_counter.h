#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::text {

// The number of occurrences of each word, sorted by the words' bytes.
using WordCounts = std::vector<std::pair<std::string, int64_t>>;

// Returns the number of occurrences of each character in all words.
std::map<char32_t, int64_t> character_counts(const WordCounts& words);

// A growing hash table of words and their counts, with open addressing; the texts are in one block.
class WordTable {
 public:
  WordTable() : slots_(kLeast) {}

  void add(std::string_view word, int64_t count);
  void add(const WordTable& other);
  void clear();
  // Removes words that occur at most `count` times.
  void remove_rare(int64_t count);

  size_t size() const { return used_; }
  size_t characters() const { return texts_.size(); }  // total bytes of the distinct words
  WordCounts sorted() const;

 private:
  static constexpr size_t kLeast = size_t{1} << 10;
  struct Slot {
    uint64_t hash = 0;
    uint64_t begin = 0;  // offset in texts_
    int64_t count = 0;   // 0: a free slot
    uint32_t bytes = 0;
  };
  void add(std::string_view word, uint64_t hash, int64_t count);
  void grow();
  std::string_view text_of(const Slot& slot) const {
    return std::string_view(texts_).substr(slot.begin, slot.bytes);
  }

  std::vector<Slot> slots_;  // their number is a power of two; at most half full
  std::string texts_;
  size_t used_ = 0;
};

// Counts the words of a text of any length in bounded memory: the text is processed in blocks, and
// threads share the lines of a block. If there are too many words, the rarest so far are removed,
// so the counts of rare words may be too low. The result depends only on the text and on
// `most_characters`.
class WordCounter {
 public:
  using OnWord = std::function<void(std::string_view)>;
  // Calls on_word for each word of `line`, which includes its newline if it has one. Lines of more
  // than 1 MiB may be split. Several threads call this function.
  using Split = std::function<void(std::string_view line, const OnWord& on_word)>;

  // `most_characters` is the maximum number of bytes of distinct words to keep.
  WordCounter(Split split, size_t most_characters);

  void add(std::string_view text);  // must be valid UTF-8
  void end_line();                  // ends a line that has no newline in the text
  WordCounts finish();
  // Words with at most this number of occurrences may have been removed; 0 if none were.
  int64_t forgotten() const { return forgotten_; }

 private:
  void count_block(std::string_view block);
  void count_lines(std::string_view text, WordTable& table) const;

  Split split_;
  size_t most_characters_;
  std::string pending_;
  WordTable table_;
  int64_t forgotten_ = 0;
};

}  // namespace fovea::text
