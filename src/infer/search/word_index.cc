#include "search/word_index.h"

#include <algorithm>
#include <map>

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

// The number of occurrences of each word in a passage, by the word's index.
using Counts = std::map<int32_t, int64_t>;

// Returns all words, ascending.
std::vector<std::string> vocabulary_of(const std::vector<std::vector<std::string>>& passages) {
  std::vector<std::string> words;
  for (const auto& passage : passages) words.insert(words.end(), passage.begin(), passage.end());
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

// Returns the index of a word; -1 if it is not among them.
int32_t index_of(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::lower_bound(words.begin(), words.end(), word);
  return found != words.end() && *found == word ? static_cast<int32_t>(found - words.begin()) : -1;
}

Counts counts_of(const std::vector<std::string>& words, const std::vector<std::string>& text) {
  Counts counts;
  for (const std::string& word : text)
    if (const int32_t index = index_of(words, word); index >= 0) ++counts[index];
  return counts;
}

// Returns the BM25 weights of the words in each passage.
SparseVectors weights_of(const std::vector<std::string>& words,
                         const std::vector<std::vector<std::string>>& passages) {
  std::vector<Counts> counts;
  std::vector<int64_t> containing(words.size());
  double total = 0;
  for (const auto& passage : passages) {
    counts.push_back(counts_of(words, passage));
    total += static_cast<double>(passage.size());
    for (const auto& [word, count] : counts.back()) ++containing[static_cast<size_t>(word)];
  }
  const auto N = static_cast<double>(passages.size()), mean = total / N;
  constexpr double k1 = WordIndex::k1, b = WordIndex::b;
  SparseVectors rows;
  rows.count = std::ssize(passages);
  rows.width = std::ssize(words);
  for (size_t i = 0; i < passages.size(); ++i) {
    const double length = static_cast<double>(passages[i].size());
    for (const auto& [word, count] : counts[i]) {
      const auto n = static_cast<double>(containing[static_cast<size_t>(word)]);
      const auto tf = static_cast<double>(count);
      const double rarity = math::log(1 + (N - n + 0.5) / (n + 0.5));
      rows.indices.push_back(word);
      rows.values.push_back(
          static_cast<float>(rarity * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))));
    }
    rows.starts.push_back(std::ssize(rows.indices));
  }
  return rows;
}

// The words of a file, each followed by a line break, in ascending order.
std::vector<std::string> read_words(const SafeTensors& file, const std::string& path) {
  const Tensor bytes = file.tensor("words");
  const auto* data = bytes.dtype() == DType::u8 ? bytes.data_as<char>() : nullptr;
  if (data == nullptr || bytes.rank() != 1)
    fail(ErrorKind::BadFile, "{}: words has another type; expected one axis of bytes", path);
  std::vector<std::string> words;
  const std::string_view text(data, static_cast<size_t>(bytes.size()));
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    if (words.size() > 1 && words[words.size() - 2] >= words.back())
      fail(ErrorKind::BadFile, "{}: word {} is not after the one before it; expected sorted words",
           path, words.size());
    at = end + 1;
  }
  return words;
}

std::vector<std::vector<std::string>> words_of_all(const std::vector<std::string_view>& passages) {
  std::vector<std::vector<std::string>> all;
  for (const std::string_view passage : passages) all.push_back(words_in(passage));
  return all;
}

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

WordIndex::WordIndex(const std::vector<std::string_view>& passages)
    : WordIndex(words_of_all(passages)) {}

WordIndex::WordIndex(const std::vector<std::vector<std::string>>& passages)
    : words_(vocabulary_of(passages)), lists_(weights_of(words_, passages)) {}

WordIndex::WordIndex(const SafeTensors& file, const std::string& path, int64_t passages)
    : words_(read_words(file, path)), lists_(file, path, std::ssize(words_), passages) {}

std::map<std::string, Tensor> WordIndex::tensors() const {
  std::string text;
  for (const std::string& word : words_) text += word + "\n";
  const Tensor bytes = empty({std::ssize(text)}, DType::u8);
  std::ranges::copy(text, bytes.data_as<char>());
  auto all = lists_.tensors();
  all["words"] = bytes;
  return all;
}

std::vector<ScoredPassage> WordIndex::best(std::string_view query, int64_t count) const {
  std::vector<TermWeight> terms;
  for (const auto& [word, occurrences] : counts_of(words_, words_in(query)))
    terms.push_back({word, static_cast<float>(occurrences)});
  return lists_.best(terms, count);
}

}  // namespace fovea::infer
