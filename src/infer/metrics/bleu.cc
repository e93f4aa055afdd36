#include "metrics/bleu.h"

#include <algorithm>
#include <map>

#include "base/math.h"
#include "metrics/words.h"

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

}  // namespace

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
  std::string apart = " ";
  for (const char c : text + " ") {
    if (stands_alone(c)) {
      apart += ' ';
      apart += c;
      apart += ' ';
    } else {
      apart += c;
    }
  }
  // Periods and commas are split from all neighbours except digits; a hyphen is split from a
  // preceding digit.
  apart = parted(apart, [](char a, char b) { return !is_digit(a) && is_point(b); }, false, true);
  apart = parted(apart, [](char a, char b) { return is_point(a) && !is_digit(b); }, true, false);
  apart = parted(apart, [](char a, char b) { return is_digit(a) && b == '-'; }, false, true);
  std::string joined;
  for (const std::string_view word : words_of(apart)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  return joined;
}

void Bleu::add(std::string_view hypothesis, std::string_view reference) {
  const std::string ours = tokenized_13a(hypothesis), theirs = tokenized_13a(reference);
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

}  // namespace fovea::infer
