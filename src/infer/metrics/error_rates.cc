#include "metrics/error_rates.h"

#include <algorithm>
#include <vector>

#include "metrics/words.h"
#include "unicode/normal_forms.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

// Removes the parts that begin with one of `opening` and end with the next of `closing`, of at
// least `least` bytes between them.
std::string without_parts(const std::string& text, std::string_view opening,
                          std::string_view closing, size_t least) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    if (opening.find(text[i]) != opening.npos) {
      const size_t end = text.find_first_of(closing, i + 1);
      if (end != text.npos && end - i > least) {
        i = end;
        continue;
      }
    }
    kept += text[i];
  }
  return kept;
}

// Returns the fewest substitutions, deletions and insertions between two lists (Levenshtein 1966).
template <class T>
int64_t distance(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<int64_t> row(b.size() + 1);  // [j]: for the elements of `a` so far and j of `b`
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string normalised_transcript(std::string_view text) {
  std::string plain = without_parts(lower_case(text), "<[", ">]", 0);
  plain = without_parts(plain, "(", ")", 1);
  text::GrowthLimit limit("transcript", 32, 1 << 16);
  limit.give(plain.size());
  text::AlignedText aligned;
  aligned.assign(plain, 0, false, limit);
  text::normalize_form(text::NormalForm::nfkc, aligned);
  const std::string composed(aligned.text());
  std::string spaced;
  bool pause = false;
  for (size_t i = 0; i < composed.size();) {
    const text::utf8::Character c = text::utf8::first(std::string_view(composed).substr(i));
    i += c.bytes;
    const bool gap =
        text::unicode::is(c.code_point, text::unicode::mark | text::unicode::punctuation |
                                            text::unicode::symbol | text::unicode::space);
    if (gap) {
      pause = !spaced.empty();
      continue;
    }
    if (pause) spaced += ' ';
    pause = false;
    text::utf8::append(spaced, c.code_point);
  }
  return lower_case(spaced);
}

void ErrorRates::add(std::string_view transcript, std::string_view reference) {
  const std::string ours = normalised_transcript(transcript),
                    theirs = normalised_transcript(reference);
  const auto words = words_of(ours), reference_words = words_of(theirs);
  word_errors_ += distance(words, reference_words);
  words_ += std::ssize(reference_words);
  const auto characters = characters_of(ours), reference_characters = characters_of(theirs);
  character_errors_ += distance(characters, reference_characters);
  characters_ += std::ssize(reference_characters);
}

}  // namespace fovea::infer
