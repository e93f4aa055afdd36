#include "metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/math.h"
#include "metrics/words.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

// Returns whether the character is always a separate word: printable ASCII except alphanumerics and
// ' - . ,
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Inserts a space between two adjacent characters that `parts` accepts, and spaces before and after
// the two if requested. Pairs do not overlap, as in a regular expression's substitution.
template <class Parts>
std::string parted(std::string_view text, Parts&& parts, bool before, bool after) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !parts(text[i], text[i + 1])) {
      result += text[i];
      continue;
    }
    if (before) result += ' ';
    result += text[i];
    result += ' ';
    result += text[++i];
    if (after) result += ' ';
  }
  return result;
}

using Counts = std::map<std::vector<std::string_view>, int64_t>;

Counts ngrams(const std::vector<std::string_view>& words, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i),
              words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

// Splits punctuation from words. Periods and commas are split from all neighbours except digits; a
// hyphen is split from a preceding digit.
std::string with_parted_punctuation(std::string_view text) {
  std::string apart;
  for (const char c : text) {
    if (stands_alone(c)) {
      apart += ' ';
      apart += c;
      apart += ' ';
    } else {
      apart += c;
    }
  }
  apart = parted(apart, [](char a, char b) { return !is_digit(a) && is_point(b); }, false, true);
  apart = parted(apart, [](char a, char b) { return is_point(a) && !is_digit(b); }, true, false);
  return parted(apart, [](char a, char b) { return is_digit(a) && b == '-'; }, false, true);
}

std::string tokenized_13a(std::string_view given) {
  std::string text(given);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  return with_parted_punctuation(" " + text + " ");
}

// The characters that sacrebleu's tokenizer zh separates. The first range also has punctuation and
// symbols of other languages: sacrebleu means U+20000 to U+2A6D6, but compares with U+2000 "0".
bool is_chinese_word(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F},
      {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
      {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

std::string tokenized_zh(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) return "";
  const std::string_view stripped(words.front().data(), words.back().data() + words.back().size());
  std::string apart;
  for (const std::string_view character : characters_of(stripped)) {
    const bool own_word = is_chinese_word(text::utf8::first(character).code_point);
    if (own_word) apart += ' ';
    apart += character;
    if (own_word) apart += ' ';
  }
  return with_parted_punctuation(apart);
}

std::string with_single_spaces(std::string_view text) {
  std::string joined;
  for (const std::string_view word : words_of(text)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  return joined;
}

}  // namespace

std::string tokenized(std::string_view text, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::mteval_13a: return with_single_spaces(tokenized_13a(text));
    case BleuTokenizer::zh: return with_single_spaces(tokenized_zh(text));
    case BleuTokenizer::characters:
      return with_single_spaces(fmt::format("{}", fmt::join(characters_of(text), " ")));
    case BleuTokenizer::none: break;
  }
  return std::string(text);
}

void Bleu::add(std::string_view hypothesis, std::string_view reference) {
  const std::string ours = tokenized(hypothesis, tokenizer_),
                    theirs = tokenized(reference, tokenizer_);
  const std::vector<std::string_view> words = words_of(ours), reference_words = words_of(theirs);
  length_ += std::ssize(words);
  reference_length_ += std::ssize(reference_words);
  for (size_t n = 1; n <= kOrder; ++n) {
    const Counts known = ngrams(reference_words, n);
    for (const auto& [ngram, count] : ngrams(words, n)) {
      totals_[n - 1] += count;
      const auto found = known.find(ngram);
      if (found != known.end()) matches_[n - 1] += std::min(count, found->second);
    }
  }
}

double Bleu::score() const {
  double log_sum = 0, smooth = 1;
  for (int n = 0; n < kOrder; ++n) {
    if (totals_[n] == 0) return 0;
    double precision = static_cast<double>(matches_[n]) / static_cast<double>(totals_[n]);
    if (matches_[n] == 0) {
      smooth *= 2;
      precision = 1 / (smooth * static_cast<double>(totals_[n]));
    }
    log_sum += math::log(precision);
  }
  if (std::all_of(matches_, matches_ + kOrder, [](int64_t count) { return count == 0; })) return 0;
  const double ratio = static_cast<double>(reference_length_) / static_cast<double>(length_);
  const double brevity = length_ < reference_length_ ? math::exp(1 - ratio) : 1;
  return 100 * brevity * math::exp(log_sum / kOrder);
}

std::string Bleu::signature(BleuTokenizer tokenizer) {
  constexpr const char* kNames[] = {"13a", "zh", "char", "none"};
  return fmt::format("nrefs:1|case:mixed|eff:no|tok:{}|smooth:exp",
                     kNames[static_cast<size_t>(tokenizer)]);
}

}  // namespace fovea::infer
