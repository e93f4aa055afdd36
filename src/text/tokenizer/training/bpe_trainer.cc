#include "tokenizer/training/bpe_trainer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using Pair = std::pair<int32_t, int32_t>;

// Maps pairs to their counts, by open addressing; the table grows when it is half full.
class PairCounts {
 public:
  struct Slot {
    Pair pair = {kFree, kFree};
    int64_t count = 0;
    int64_t step = -1;  // the step in which the entry was created
    size_t entry = 0;   // the entry that collects positions of the pair in that step
  };

  PairCounts() : slots_(size_t{1} << 12) {}

  Slot& operator[](Pair pair) {
    if (2 * used_ >= slots_.size()) grow();
    Slot& slot = slots_[slot_of(pair)];
    if (slot.pair.first == kFree) {
      slot.pair = pair;
      ++used_;
    }
    return slot;
  }

 private:
  static constexpr int32_t kFree = -1;

  size_t slot_of(Pair pair) const {
    uint64_t key =
        uint64_t{static_cast<uint32_t>(pair.first)} << 32 | static_cast<uint32_t>(pair.second);
    key = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
    size_t at = key >> (64 - std::countr_zero(slots_.size()));
    while (slots_[at].pair.first != kFree && slots_[at].pair != pair)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.pair.first != kFree) slots_[slot_of(slot.pair)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// The tokens found so far.
class Vocabulary {
 public:
  int32_t add(const std::string& text) {
    const auto [found, added] = ids_.emplace(text, static_cast<int32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }
  bool holds(const std::string& text) const { return ids_.contains(text); }
  const std::string& text_of(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }
  std::vector<std::string> texts() && { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int32_t> ids_;
};

std::vector<char32_t> alphabet_of(const WordCounts& words, const BpeTrainerOptions& options) {
  std::map<char32_t, int64_t> counts = character_counts(words);
  for (const char32_t character : options.initial_alphabet) counts[character] = INT64_MAX;
  std::vector<char32_t> alphabet;
  for (const auto& [character, count] : counts) alphabet.push_back(character);
  const auto limit = static_cast<size_t>(options.alphabet_limit);
  if (limit > 0 && alphabet.size() > limit) {
    std::stable_sort(alphabet.begin(), alphabet.end(),
                     [&](char32_t a, char32_t b) { return counts[a] > counts[b]; });
    alphabet.resize(limit);
    std::sort(alphabet.begin(), alphabet.end());
  }
  return alphabet;
}

// The symbols of all words in sequence. The id of a symbol is stored at the position of its first
// character, its length at its first and last positions, so that both neighbours can be found.
// Boundaries separate words.
class Symbols {
 public:
  static constexpr int32_t kBoundary = -1, kGone = -2;

  void start(size_t positions) {
    if (positions >= UINT32_MAX) {
      fail(ErrorKind::OutOfMemory,
           "tokenizer training: the distinct words have {} bytes and separators; expected fewer "
           "than {}",
           positions, UINT32_MAX);
    }
    ids_.reserve(positions);
    words_.reserve(positions);
    push(kBoundary, 0);
  }
  void push(int32_t id, uint32_t word) {
    ids_.push_back(id);
    words_.push_back(word);
    spans_.push_back(1);
  }

  uint32_t positions() const { return static_cast<uint32_t>(ids_.size()); }
  int32_t id(uint32_t position) const { return ids_[position]; }
  uint32_t word(uint32_t position) const { return words_[position]; }
  uint32_t next(uint32_t position) const { return position + spans_[position]; }
  uint32_t previous(uint32_t position) const { return position - spans_[position - 1]; }

  void join(uint32_t left, uint32_t right, int32_t id) {
    const uint32_t end = next(right);
    ids_[left] = id;
    ids_[right] = kGone;
    spans_[left] = spans_[end - 1] = end - left;
  }

 private:
  std::vector<int32_t> ids_;
  std::vector<uint32_t> words_, spans_;
};

class BpeTrainer {
 public:
  BpeTrainer(const WordCounts& words, const BpeTrainerOptions& options)
      : words_(words), options_(options) {}

  TrainedBpe train() {
    for (const std::string& token : options_.special_tokens) vocabulary_.add(token);
    const int64_t special = vocabulary_.size();
    split_words();
    count_pairs();
    const int64_t first = vocabulary_.size();
    while (vocabulary_.size() < options_.vocabulary && step()) {
      const double done = static_cast<double>(vocabulary_.size() - first) /
                          static_cast<double>(options_.vocabulary - first);
      if (options_.progress && !options_.progress(done)) return {};
    }
    TrainedBpe found{
        .texts = {}, .merges = merges(), .characters = static_cast<size_t>(first - special)};
    found.texts = std::move(vocabulary_).texts();
    return found;
  }

 private:
  // The positions at which a pair arose in one step.
  struct Entry {
    Pair pair;
    std::vector<uint32_t> positions;
  };
  // An entry in the queue, with the count of its pair when it was last queued.
  struct Queued {
    int64_t count;
    Pair pair;
    size_t entry;
    bool operator<(const Queued& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void split_words() {
    for (const char32_t character : alphabet_of(words_, options_)) {
      std::string text;
      utf8::append(text, character);
      vocabulary_.add(text);
    }
    size_t positions = 1;
    for (const auto& [word, count] : words_) positions += word.size() + 1;
    symbols_.start(positions);
    for (size_t i = 0; i < words_.size(); ++i)
      split_word(words_[i].first, static_cast<uint32_t>(i));
  }

  void split_word(std::string_view word, uint32_t index) {
    for (size_t begin = 0; begin < word.size();) {
      const size_t length = utf8::first(word.substr(begin)).bytes;
      std::string text(word.substr(begin, length));
      if (vocabulary_.holds(text)) {
        if (begin > 0) text.insert(0, options_.continuing_subword_prefix);
        symbols_.push(vocabulary_.add(text), index);
      }
      begin += length;
    }
    symbols_.push(Symbols::kBoundary, index);
  }

  int64_t count_of(uint32_t position) const { return words_[symbols_.word(position)].second; }

  void count_pairs() {
    for (uint32_t position = 1; position + 1 < symbols_.positions(); ++position) {
      const Pair pair = {symbols_.id(position), symbols_.id(position + 1)};
      if (pair.first >= 0 && pair.second >= 0) introduce(pair, position, count_of(position));
    }
    queue_new_entries();
  }

  void introduce(Pair pair, uint32_t position, int64_t count) {
    PairCounts::Slot& slot = counts_[pair];
    slot.count += count;
    if (slot.step != step_) {
      slot.step = step_;
      slot.entry = entries_.size();
      entries_.push_back({pair, {}});
    }
    entries_[slot.entry].positions.push_back(position);
  }

  void queue_new_entries() {
    for (; queued_ < entries_.size(); ++queued_) {
      const int64_t count = counts_[entries_[queued_].pair].count;
      if (count > 0) {
        queue_.push({count, entries_[queued_].pair, queued_});
      } else {
        entries_[queued_].positions = {};
      }
    }
    ++step_;
  }

  // Performs one merge; returns false if no pair is frequent enough.
  bool step() {
    while (!queue_.empty()) {
      Queued top = queue_.top();
      queue_.pop();
      const int64_t count = counts_[top.pair].count;
      if (top.count != count) {
        top.count = count;
        queue_.push(top);
        continue;
      }
      if (count < 1 || count < options_.min_frequency) return false;
      merge(top);
      return true;
    }
    return false;
  }

  void merge(const Queued& top) {
    const auto [left, right] = top.pair;
    std::string_view tail = vocabulary_.text_of(right);
    const std::string& prefix = options_.continuing_subword_prefix;
    if (tail.starts_with(prefix)) tail.remove_prefix(prefix.size());
    const int32_t merged = vocabulary_.add(vocabulary_.text_of(left) + std::string(tail));
    merged_.push_back(top.pair);
    const std::vector<uint32_t> positions = std::move(entries_[top.entry].positions);
    for (const uint32_t position : positions) {
      if (symbols_.id(position) != left) continue;
      const uint32_t second = symbols_.next(position);
      if (symbols_.id(second) == right) join(position, second, merged);
    }
    queue_new_entries();
  }

  // The merged pair keeps its count, as in Hugging Face's trainer, although its positions are gone.
  void join(uint32_t position, uint32_t second, int32_t merged) {
    const int64_t count = count_of(position);
    const uint32_t previous = symbols_.previous(position), next = symbols_.next(second);
    const int32_t before = symbols_.id(previous), after = symbols_.id(next);
    if (before >= 0) {
      counts_[{before, symbols_.id(position)}].count -= count;
      introduce({before, merged}, previous, count);
    }
    if (after >= 0) {
      counts_[{symbols_.id(second), after}].count -= count;
      introduce({merged, after}, position, count);
    }
    symbols_.join(position, second, merged);
  }

  // Returns the merges in the order of their ranks. A pair may have been merged twice, since
  // several pairs can form the same text; like Hugging Face, keeps the later rank.
  std::vector<std::pair<std::string, std::string>> merges() const {
    std::map<Pair, size_t> last;
    for (size_t i = 0; i < merged_.size(); ++i) last[merged_[i]] = i;
    std::vector<std::pair<std::string, std::string>> list;
    for (size_t i = 0; i < merged_.size(); ++i) {
      const auto [left, right] = merged_[i];
      if (last.at(merged_[i]) == i)
        list.emplace_back(vocabulary_.text_of(left), vocabulary_.text_of(right));
    }
    return list;
  }

  const WordCounts& words_;
  const BpeTrainerOptions& options_;
  Vocabulary vocabulary_;
  Symbols symbols_;
  PairCounts counts_;
  std::vector<Entry> entries_;
  size_t queued_ = 0;  // number of entries that queue_new_entries() has processed
  int64_t step_ = 0;
  std::priority_queue<Queued> queue_;
  std::vector<Pair> merged_;
};

}  // namespace

TrainedBpe train_bpe(const WordCounts& words, const BpeTrainerOptions& options) {
  return BpeTrainer(words, options).train();
}

}  // namespace fovea::text
