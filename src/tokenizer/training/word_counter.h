#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// How often each word occurs; sorted by the words' bytes.
using WordCounts = std::vector<std::pair<std::string, int64_t>>;

// A table of words that grows: open addressing, the texts in one block.
class WordTable {
 public:
  WordTable() : slots_(kLeast) {}

  void add(std::string_view word, int64_t count);
  void add(const WordTable& other);
  void clear();
  // Leaves out words that occur at most `count` times.
  void remove_rare(int64_t count);

  size_t size() const { return used_; }
  size_t characters() const { return texts_.size(); }  // bytes of all words
  WordCounts sorted() const;

 private:
  static constexpr size_t kLeast = size_t{1} << 10;
  struct Slot {
    uint64_t hash = 0;
    uint64_t begin = 0;  // in texts_
    int64_t count = 0;   // 0: a free slot
    uint32_t bytes = 0;
  };
  void add(std::string_view word, uint64_t hash, int64_t count);
  void grow();
  std::string_view text_of(const Slot& slot) const {
    return std::string_view(texts_).substr(slot.begin, slot.bytes);
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::string texts_;
  size_t used_ = 0;
};

// Counts the words of a text of any length in bounded memory: the text goes through in blocks, the
// lines of a block to all threads. When the words become too many, those that have been rare so far
// are forgotten, so that counts of rare words are too low then; this depends on nothing but the
// text.
class WordCounter {
 public:
  using OnWord = std::function<void(std::string_view)>;
  // Calls on_word for each word of a line, which has its line end (a line longer than a block is
  // cut). It is called by several threads.
  using Split = std::function<void(std::string_view line, const OnWord& on_word)>;

  // `most_characters`: bytes of the distinct words that are kept.
  WordCounter(Split split, size_t most_characters);

  void add(std::string_view text);  // valid UTF-8
  void end_line();                  // here, without a line end in the text
  WordCounts finish();
  int64_t forgotten() const { return forgotten_; }  // words of at most so many occurrences; or 0

 private:
  void count_block(std::string_view block);
  void count_lines(std::string_view text, WordTable& table) const;

  Split split_;
  size_t most_characters_;
  std::string pending_;
  WordTable table_;
  int64_t forgotten_ = 0;
};

}  // namespace fovea
