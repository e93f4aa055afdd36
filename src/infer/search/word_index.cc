#include "search/word_index.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/math.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

bool is_word_itself(char32_t c) {
  static const int ideographs = text::unicode::script(U'\u5b57');
  return text::unicode::is(c, text::unicode::letter) && text::unicode::script(c) == ideographs;
}

// An entry of the index: a word, by its number in the order of its first occurrence.
struct WordEntry {
  int32_t word, row, count;
};

// The words of texts, and how often each text has them.
struct CountedWords {
  std::unordered_map<std::string, int32_t> numbers;
  std::vector<WordEntry> entries;  // by ascending rows
  std::vector<int32_t> lengths;

  void add(std::string_view text) {
    const auto row = static_cast<int32_t>(lengths.size());
    std::vector<int32_t> words;
    for (std::string& word : words_in(text))
      words.push_back(
          numbers.try_emplace(std::move(word), static_cast<int32_t>(numbers.size())).first->second);
    lengths.push_back(static_cast<int32_t>(words.size()));
    std::sort(words.begin(), words.end());
    for (size_t i = 0, next = 0; i < words.size(); i = next) {
      while (next < words.size() && words[next] == words[i]) ++next;
      entries.push_back({words[i], row, static_cast<int32_t>(next - i)});
    }
  }
};

}  // namespace

std::vector<std::string> words_in(std::string_view text) {
  constexpr uint16_t kParts = text::unicode::letter | text::unicode::number | text::unicode::mark;
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const text::utf8::Character c = text::utf8::first(text.substr(at));
    at += static_cast<size_t>(c.bytes);
    const bool alone = is_word_itself(c.code_point);
    if (alone || !text::unicode::is(c.code_point, kParts)) finish();
    if (!text::unicode::is(c.code_point, kParts)) continue;
    for (const char32_t lower : text::unicode::lowercase(c.code_point))
      if (lower != 0) text::utf8::append(word, lower);
    if (alone) finish();
  }
  finish();
  return words;
}

WordIndex::WordIndex(std::span<const std::string_view> texts) {
  CountedWords counted;
  for (const std::string_view text : texts) counted.add(text);
  std::vector<std::pair<std::string_view, int32_t>> sorted(counted.numbers.begin(),
                                                           counted.numbers.end());
  std::sort(sorted.begin(), sorted.end());
  std::string all;
  std::vector<size_t> position(sorted.size());  // of a word in the ascending order
  for (size_t i = 0; i < sorted.size(); ++i) {
    position[static_cast<size_t>(sorted[i].second)] = i;
    all.append(sorted[i].first) += '\n';
  }
  std::vector<int64_t> starts(sorted.size() + 1);
  for (const WordEntry& entry : counted.entries)
    ++starts[position[static_cast<size_t>(entry.word)] + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  std::vector<int32_t> rows(counted.entries.size()), counts(counted.entries.size());
  for (const WordEntry& entry : counted.entries) {
    const auto at = static_cast<size_t>(next[position[static_cast<size_t>(entry.word)]]++);
    rows[at] = entry.row;
    counts[at] = entry.count;
  }
  text_ = stored_text(all);
  starts_ = StoredArray(starts);
  rows_ = StoredArray(rows);
  counts_ = StoredArray(counts);
  lengths_ = StoredArray(counted.lengths);
  find_words("words");
}

WordIndex::WordIndex(const SafeTensors& file, const std::string& path, int64_t rows)
    : text_(file, "words", DType::u8, path),
      starts_(file, "starts", DType::i64, path),
      rows_(file, "rows", DType::i32, path),
      counts_(file, "counts", DType::i32, path),
      lengths_(file, "lengths", DType::i32, path) {
  const auto expect = [&](bool holds, const char* wrong) {
    if (holds) return;
    fail(ErrorKind::BadFile, "{}: {}; expected the words of {} texts", path, wrong, rows);
  };
  expect(lengths_.size() == rows, "has another number of texts");
  expect(rows_.size() == counts_.size(), "has different numbers of rows and counts");
  find_words(path);
  const auto starts = starts_.all();
  expect(std::ssize(starts) == std::ssize(at_), "has another number of words");
  expect(!starts.empty() && starts.front() == 0 && starts.back() == rows_.size() &&
             std::ranges::is_sorted(starts),
         "its lists do not follow one another");
  const auto numbers = rows_.all();
  for (size_t w = 0; w + 1 < starts.size(); ++w)
    for (auto i = static_cast<size_t>(starts[w]); i < static_cast<size_t>(starts[w + 1]); ++i) {
      const int64_t before = i == static_cast<size_t>(starts[w]) ? -1 : numbers[i - 1];
      expect(numbers[i] > before && numbers[i] < rows, "a text does not exist");
    }
  const auto positive = [](int32_t count) { return count > 0; };
  expect(std::ranges::all_of(counts_.all(), positive), "a count is not positive");
  expect(std::ranges::all_of(lengths(), [](int32_t length) { return length >= 0; }),
         "a length is negative");
}

std::string_view WordIndex::word(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  return text_of(text_).substr(static_cast<size_t>(at_[i]),
                               static_cast<size_t>(at_[i + 1] - at_[i] - 1));
}

// Finds where the words begin; throws BadFile unless they are ascending and end with line breaks.
void WordIndex::find_words(const std::string& path) {
  const auto bytes = text_.all();
  at_ = {0};
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] == '\n') at_.push_back(static_cast<int64_t>(i) + 1);
  for (int64_t w = 1; w + 1 < std::ssize(at_); ++w)
    if (word(w - 1) >= word(w))
      fail(ErrorKind::BadFile, "{}: word {} is not after the one before it; expected sorted words",
           path, w + 1);
  if (at_.back() != text_.size())
    fail(ErrorKind::BadFile, "{}: its last word does not end; expected a line break", path);
}

std::map<std::string, Tensor> WordIndex::tensors() const {
  return {{"words", text_.tensor()},
          {"starts", starts_.tensor()},
          {"rows", rows_.tensor()},
          {"counts", counts_.tensor()},
          {"lengths", lengths_.tensor()}};
}

WordIndex::Occurrences WordIndex::of(std::string_view wanted) const {
  int64_t first = 0, last = std::ssize(at_) - 1;
  while (first < last) {
    const int64_t middle = (first + last) / 2;
    if (word(middle) < wanted)
      first = middle + 1;
    else
      last = middle;
  }
  if (first == std::ssize(at_) - 1 || word(first) != wanted) return {};
  const auto begin = static_cast<size_t>(starts_[first]),
             size = static_cast<size_t>(starts_[first + 1]) - begin;
  return {rows_.all().subspan(begin, size), counts_.all().subspan(begin, size)};
}

std::vector<ScoredPassage> best_by_words(std::span<const WordPart> parts, std::string_view query,
                                         int64_t count) {
  const auto passage_of = [](std::span<const int32_t> numbers, int32_t row) {
    return numbers[static_cast<size_t>(row)];
  };
  int64_t passages = 0, words = 0;
  for (const WordPart& part : parts) {
    const auto lengths = part.words->lengths();
    for (size_t row = 0; row < lengths.size(); ++row) {
      if (part.all[row] < 0) continue;
      ++passages;
      words += lengths[row];
    }
  }
  const auto N = static_cast<double>(passages), mean = static_cast<double>(words) / N;
  std::map<std::string, int64_t> terms;
  for (std::string& word : words_in(query)) ++terms[std::move(word)];
  constexpr double k1 = Bm25::k1, b = Bm25::b;
  std::unordered_map<int64_t, double> scores;
  for (const auto& [word, occurrences] : terms) {
    double n = 0;
    for (const WordPart& part : parts)
      for (const int32_t row : part.words->of(word).rows) n += passage_of(part.all, row) >= 0;
    const double rarity = math::log(1 + (N - n + 0.5) / (n + 0.5));
    for (const WordPart& part : parts) {
      const auto [rows, counts] = part.words->of(word);
      for (size_t i = 0; i < rows.size(); ++i) {
        const int32_t number = passage_of(part.numbers, rows[i]);
        if (number < 0) continue;
        const double tf = counts[i], length = passage_of(part.words->lengths(), rows[i]);
        const auto weight =
            static_cast<float>(rarity * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean)));
        scores[number] += static_cast<double>(occurrences) * double{weight};
      }
    }
  }
  std::vector<ScoredPassage> all;
  for (const auto& [number, score] : scores) all.push_back({number, static_cast<float>(score)});
  return best_of(std::move(all), count);
}

}  // namespace fovea::infer
