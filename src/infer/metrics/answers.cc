#include "metrics/answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "metrics/words.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// The F1 of the words of two normalised answers.
double f1_of_words(const std::string& found, const std::string& expected) {
  const std::vector<std::string_view> ours = words_of(found), theirs = words_of(expected);
  if (ours.empty() || theirs.empty()) return ours.empty() && theirs.empty() ? 1 : 0;
  std::map<std::string_view, int64_t> left;
  for (const std::string_view word : theirs) ++left[word];
  double common = 0;
  for (const std::string_view word : ours) common += left[word]-- > 0;
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(ours.size());
  const double recall = common / static_cast<double>(theirs.size());
  return 2 * precision * recall / (precision + recall);
}

// The mean over the questions of the best score(answer, true answer). True answers that are empty
// after normalisation are left out; without any, the answer must be empty.
template <class Score>
double percent_of(const AnswerPairs& answers, const Score& score) {
  double sum = 0;
  for (const auto& [answer, truths] : answers) {
    const std::string found = normal_answer(answer);
    std::vector<std::string> expected;
    for (const std::string& truth : truths) {
      expected.push_back(normal_answer(truth));
      if (expected.back().empty()) expected.pop_back();
    }
    if (expected.empty()) expected.emplace_back();
    double best = 0;
    for (const std::string& truth : expected) best = std::max<double>(best, score(found, truth));
    sum += best;
  }
  return answers.empty() ? 0 : 100 * sum / static_cast<double>(answers.size());
}

}  // namespace

std::string normal_answer(std::string_view text) {
  std::string plain, word;
  const auto end_word = [&] {
    plain += word == "a" || word == "an" || word == "the" ? " " : word;
    word.clear();
  };
  while (!text.empty()) {
    const text::utf8::Character character = text::utf8::first(text);
    text.remove_prefix(character.bytes);
    for (const char32_t c : text::unicode::lowercase(character.code_point)) {
      if (c == 0 || is_ascii_punctuation(c)) continue;
      const bool in_word = text::unicode::is(c, text::unicode::word);
      if (!in_word) end_word();
      text::utf8::append(in_word ? word : plain, c);
    }
  }
  end_word();
  return fmt::format("{}", fmt::join(words_of(plain), " "));
}

double exact_answers(const AnswerPairs& answers) {
  return percent_of(answers, [](const auto& found, const auto& truth) { return found == truth; });
}

double answer_f1(const AnswerPairs& answers) { return percent_of(answers, f1_of_words); }

}  // namespace fovea::infer
