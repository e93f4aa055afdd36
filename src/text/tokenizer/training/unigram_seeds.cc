#include <algorithm>
#include <map>

#include "base/error.h"
#include "tokenizer/training/unigram_trainer.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

constexpr uint32_t kLongest = 16;  // maximum characters of a piece, as in sentencepiece

// A suffix array of the words, in which each suffix ends at the end of its word.
class Suffixes {
 public:
  explicit Suffixes(const WordCounts& words) : words_(words) {
    size_t positions = 0;
    for (const auto& [word, count] : words) positions += word.size();
    if (positions >= UINT32_MAX) {
      fail(ErrorKind::OutOfMemory,
           "tokenizer training: the distinct words contain {} bytes; expected fewer than {}",
           positions, UINT32_MAX);
    }
    characters_.reserve(positions);
    for (size_t i = 0; i < words.size(); ++i) add(words[i].first, static_cast<uint32_t>(i));
    sort();
  }

  // Calls on_piece(position, length in characters, occurrences) for each substring that occurs at
  // several positions of the words but is not always followed by the same character, and for each
  // other word that occurs more than once. Ignores substrings of one character.
  template <class OnPiece>
  void for_each(OnPiece&& on_piece) const {
    struct Open {
      uint32_t length;
      int64_t before;  // occurrences before its first suffix
      uint32_t position;
    };
    std::vector<Open> open;
    int64_t occurrences = 0;
    uint32_t shared = 0;  // length of the common prefix of the previous suffix and this one
    for (size_t i = 0; i < order_.size(); ++i) {
      const uint32_t position = order_[i].position;
      const int64_t count = words_[word_[position]].second;
      const uint32_t next = i + 1 < order_.size() ? common(position, order_[i + 1].position) : 0;
      if (is_word(position) && shared < length_[position] && next < length_[position] && count > 1)
        on_piece(position, length_[position], count);
      if (next > shared) open.push_back({next, occurrences, position});
      occurrences += count;
      while (!open.empty() && open.back().length > next) {
        const Open done = open.back();
        open.pop_back();
        if (done.length > 1) on_piece(done.position, done.length, occurrences - done.before);
        const uint32_t outer = open.empty() ? 0 : open.back().length;
        if (next > outer) open.push_back({next, done.before, done.position});
      }
      shared = next;
    }
  }

  std::string text(uint32_t position, uint32_t length) const {
    std::string text;
    for (uint32_t i = 0; i < length; ++i) utf8::append(text, characters_[position + i]);
    return text;
  }

 private:
  struct Suffix {
    uint64_t start;  // the first three characters of the suffix, 21 bits each
    uint32_t position;
  };

  void add(std::string_view word, uint32_t index) {
    const size_t begin = characters_.size();
    for (size_t i = 0; i < word.size();) {
      const utf8::Character character = utf8::first(word.substr(i));
      characters_.push_back(character.code_point);
      word_.push_back(index);
      i += character.bytes;
    }
    // Lengths are at most kLongest + 1, which distinguishes a word of kLongest characters from
    // longer ones.
    for (size_t position = begin; position < characters_.size(); ++position)
      length_.push_back(
          static_cast<uint8_t>(std::min<size_t>(characters_.size() - position, kLongest + 1)));
    starts_.resize(characters_.size());
    if (begin < characters_.size()) starts_[begin] = true;
  }

  bool is_word(uint32_t position) const {
    return starts_[position] && length_[position] > 1 && length_[position] <= kLongest;
  }

  void sort() {
    for (uint32_t position = 0; position < characters_.size(); ++position) {
      if (length_[position] < 2) continue;
      uint64_t start = 0;
      for (uint32_t i = 0; i < 3; ++i)
        start = start << 21 | (i < length_[position] ? characters_[position + i] : 0u);
      order_.push_back({start, position});
    }
    std::sort(order_.begin(), order_.end(), [&](const Suffix& a, const Suffix& b) {
      if (a.start != b.start) return a.start < b.start;
      const uint32_t shared = common(a.position, b.position);
      const uint32_t limit =
          std::min<uint32_t>(kLongest, std::min(length_[a.position], length_[b.position]));
      if (shared < limit)
        return characters_[a.position + shared] < characters_[b.position + shared];
      const auto size = [&](uint32_t position) {
        return std::min<uint32_t>(length_[position], kLongest);
      };
      return size(a.position) != size(b.position) ? size(a.position) < size(b.position)
                                                  : a.position < b.position;
    });
  }

  uint32_t common(uint32_t a, uint32_t b) const {
    const uint32_t limit = std::min<uint32_t>(kLongest, std::min(length_[a], length_[b]));
    uint32_t shared = 0;
    while (shared < limit && characters_[a + shared] == characters_[b + shared]) ++shared;
    return shared;
  }

  const WordCounts& words_;
  // By position: one element per character of the words.
  std::vector<char32_t> characters_;
  std::vector<uint32_t> word_;
  std::vector<uint8_t> length_;  // characters to the end of the word, at most kLongest + 1
  std::vector<bool> starts_;     // whether a word starts here
  std::vector<Suffix> order_;
};

}  // namespace

std::vector<ScoredPiece> unigram_seeds(const WordCounts& words, size_t most) {
  std::vector<ScoredPiece> pieces;
  for (const auto& [character, count] : character_counts(words)) {
    std::string text;
    utf8::append(text, character);
    pieces.emplace_back(text, static_cast<double>(count));
  }
  struct Found {
    int64_t covered;
    uint32_t position, length;
  };
  std::vector<Found> found;
  const Suffixes suffixes(words);
  suffixes.for_each([&](uint32_t position, uint32_t length, int64_t occurrences) {
    found.push_back({occurrences * length, position, length});
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.covered > b.covered; });
  for (const Found& one : found) {
    if (pieces.size() >= most) break;
    pieces.emplace_back(suffixes.text(one.position, one.length), static_cast<double>(one.covered));
  }
  return pieces;
}

}  // namespace fovea::text
