#include "tokenizer/training/word_counter.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "base/threads.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

// The size of a block in bytes: large enough that threads have enough work and merging their tables
// is cheap, but small compared with the memory of training.
constexpr size_t kBlock = size_t{32} << 20;

// The maximum size of the pieces of a block that threads share. Pieces end at line ends, or within
// a longer line, at places that do not depend on the number of threads.
constexpr size_t kPiece = size_t{1} << 20;

// Ends a line that has no newline in the text; this byte does not occur in UTF-8.
constexpr char kLineEnd = '\xFF';

// Returns the end of the last line that ends at or before `end`; if there is none, the end of the
// last complete character.
size_t cut_before(std::string_view text, size_t end) {
  constexpr char ends[] = {'\n', kLineEnd};
  const size_t newline = text.substr(0, end).find_last_of(std::string_view(ends, 2));
  if (newline != std::string_view::npos) return newline + 1;
  const size_t cut = end - utf8::incomplete_suffix(text.substr(0, end));
  return cut > 0 ? cut : end;
}

}  // namespace

std::map<char32_t, int64_t> character_counts(const WordCounts& words) {
  std::map<char32_t, int64_t> counts;
  for (const auto& [word, count] : words) {
    for (size_t i = 0; i < word.size();) {
      const utf8::Character character = utf8::first(std::string_view(word).substr(i));
      counts[character.code_point] += count;
      i += character.bytes;
    }
  }
  return counts;
}

void WordTable::add(std::string_view word, int64_t count) { add(word, hash_bytes(word), count); }

void WordTable::add(const WordTable& other) {
  for (const Slot& slot : other.slots_) {
    if (slot.count > 0) add(other.text_of(slot), slot.hash, slot.count);
  }
}

void WordTable::add(std::string_view word, uint64_t hash, int64_t count) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.count == 0) {
      slot = {hash, texts_.size(), count, static_cast<uint32_t>(word.size())};
      texts_ += word;
      if (2 * ++used_ > slots_.size()) grow();
      return;
    }
    if (slot.hash == hash && text_of(slot) == word) {
      slot.count += count;
      return;
    }
  }
}

void WordTable::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.count == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].count > 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void WordTable::clear() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  texts_.clear();
  used_ = 0;
}

void WordTable::remove_rare(int64_t count) {
  WordTable kept;
  for (const Slot& slot : slots_) {
    if (slot.count > count) kept.add(text_of(slot), slot.hash, slot.count);
  }
  *this = std::move(kept);
}

WordCounts WordTable::sorted() const {
  WordCounts words;
  words.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.count > 0) words.emplace_back(text_of(slot), slot.count);
  }
  std::sort(words.begin(), words.end());
  return words;
}

WordCounter::WordCounter(Split split, size_t most_characters)
    : split_(std::move(split)), most_characters_(most_characters) {}

void WordCounter::add(std::string_view text) {
  pending_ += text;
  while (pending_.size() >= kBlock) {
    const size_t end = cut_before(pending_, kBlock);
    count_block(std::string_view(pending_).substr(0, end));
    pending_.erase(0, end);
  }
}

void WordCounter::end_line() {
  if (!pending_.empty() && pending_.back() != '\n') pending_ += kLineEnd;
}

WordCounts WordCounter::finish() {
  count_block(pending_);
  pending_ = {};
  return table_.sorted();
}

void WordCounter::count_block(std::string_view block) {
  std::vector<std::string_view> pieces;
  while (!block.empty()) {
    const size_t end = block.size() <= kPiece ? block.size() : cut_before(block, kPiece);
    pieces.push_back(block.substr(0, end));
    block.remove_prefix(end);
  }
  const int64_t count = std::ssize(pieces), parts = std::min<int64_t>(thread_count(), count);
  std::vector<WordTable> tables(static_cast<size_t>(parts));
  parallel_tasks(parts, [&](int64_t part) {
    for (int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i)
      count_lines(pieces[static_cast<size_t>(i)], tables[static_cast<size_t>(part)]);
  });
  for (const WordTable& table : tables) table_.add(table);
  if (table_.characters() <= most_characters_) return;
  // Removes words until half of the limit is free, so that the next removal is not needed soon.
  for (int64_t rare = 1; table_.characters() > most_characters_ / 2; ++rare) {
    table_.remove_rare(rare);
    forgotten_ = std::max(forgotten_, rare);
  }
}

void WordCounter::count_lines(std::string_view text, WordTable& table) const {
  const OnWord on_word = [&](std::string_view word) { table.add(word, 1); };
  size_t newline = 0;  // position of the next newline, which kLineEnd bytes may precede
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    if (newline <= begin) newline = std::min(text.find('\n', begin), text.size() - 1);
    end = newline + 1;
    size_t line = end;
    if (const size_t cut = text.substr(begin, end - begin).find(kLineEnd);
        cut != std::string_view::npos) {
      line = begin + cut;
      end = line + 1;
    }
    if (line > begin) split_(text.substr(begin, line - begin), on_word);
  }
}

}  // namespace fovea::text
