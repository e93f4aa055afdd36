#include "probing/tfidf.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/math.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::study {
namespace {

using Row = std::vector<Features::Element>;

// Calls use(column, u, v) for the columns in which one of the sorted rows has an element.
template <class Use>
void each_column(const Row& u, const Row& v, const Use& use) {
  auto a = u.begin(), b = v.begin();
  while (a != u.end() || b != v.end()) {
    const bool left = b == v.end() || (a != u.end() && a->column <= b->column);
    const bool right = a == u.end() || (b != v.end() && b->column <= a->column);
    use(left ? a->column : b->column, left ? a->value : 0.0f, right ? b->value : 0.0f);
    a += left;
    b += right;
  }
}

}  // namespace

std::vector<std::string> lower_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  int64_t characters = 0;
  const auto end_word = [&] {
    if (characters > 1) words.push_back(word);
    word.clear();
    characters = 0;
  };
  for (size_t at = 0; at < text.size();) {
    const text::utf8::Character character = text::utf8::first(text.substr(at));
    at += character.bytes;
    for (const char32_t c : text::unicode::lowercase(character.code_point)) {
      if (c == 0) continue;
      if (c == U'_' || text::unicode::is(c, text::unicode::letter | text::unicode::number)) {
        text::utf8::append(word, c);
        ++characters;
      } else {
        end_word();
      }
    }
  }
  end_word();
  return words;
}

WordCounts::WordCounts(const std::vector<std::string>& texts) {
  std::unordered_map<std::string, int32_t> numbers;
  for (const std::string& text : texts) {
    std::map<int32_t, int32_t> counts;
    for (const std::string& word : lower_words(text))
      ++counts[numbers.try_emplace(word, static_cast<int32_t>(numbers.size())).first->second];
    auto& words = texts_.emplace_back();
    for (const auto& [number, count] : counts) words.push_back({number, count});
  }
  words_ = std::ssize(numbers);
}

// Returns 0 for words that no training text has.
std::vector<double> WordCounts::inverse_frequencies(const std::vector<int32_t>& training,
                                                    bool pairs) const {
  std::vector<double> with(static_cast<size_t>(words_));
  const auto count = [&](size_t text) {
    for (const Word& word : texts_[text]) ++with[static_cast<size_t>(word.number)];
  };
  for (const int32_t i : training) {
    const auto text = static_cast<size_t>(i);
    if (!pairs) {
      count(text);
      continue;
    }
    count(2 * text);
    count(2 * text + 1);
  }
  const auto texts = static_cast<double>(training.size() * (pairs ? 2 : 1));
  for (double& each : with)
    if (each > 0) each = math::log((1 + texts) / (1 + each)) + 1;
  return with;
}

Row WordCounts::row(size_t text, const std::vector<double>& idf) const {
  double squares = 0;
  for (const Word& word : texts_[text]) {
    const double value = word.count * idf[static_cast<size_t>(word.number)];
    squares += value * value;
  }
  Row elements;
  for (const Word& word : texts_[text]) {
    const double value = word.count * idf[static_cast<size_t>(word.number)];
    if (value > 0)
      elements.push_back({word.number, static_cast<float>(value / std::sqrt(squares))});
  }
  return elements;
}

Features WordCounts::features(const std::vector<int32_t>& training, bool pairs) const {
  const std::vector<double> idf = inverse_frequencies(training, pairs);
  // A text without words is a row of zeros; a model needs at least one column.
  const int64_t width = std::max<int64_t>(1, words_);
  Features features(pairs ? 2 * width : width);
  if (!pairs) {
    for (size_t i = 0; i < texts_.size(); ++i) features.add_sparse_row(row(i, idf));
    return features;
  }
  for (size_t i = 0; i + 1 < texts_.size(); i += 2) {
    Row differences, products;
    each_column(row(i, idf), row(i + 1, idf), [&](int32_t column, float u, float v) {
      if (u != v) differences.push_back({column, std::abs(u - v)});
      if (u != 0 && v != 0) products.push_back({column + static_cast<int32_t>(width), u * v});
    });
    differences.insert(differences.end(), products.begin(), products.end());
    features.add_sparse_row(differences);
  }
  return features;
}

}  // namespace fovea::study
