#include "metrics/rouge.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "metrics/words.h"

namespace fovea::infer {
namespace {

// Returns the text in lower case, with spaces in place of all characters but a-z and 0-9. Python's
// lower() makes ASCII letters of two other characters: the Kelvin sign, and the capital I with a
// dot, whose dot becomes a separate character.
std::string lowered(std::string_view text) {
  std::string result;
  for (const std::string_view character : characters_of(text)) {
    const char c = character[0];
    if (character == "\u212a") {
      result += 'k';
    } else if (character == "\u0130") {
      result += "i ";
    } else if (c >= 'A' && c <= 'Z') {
      result += static_cast<char>(c - 'A' + 'a');
    } else {
      result += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : ' ';
    }
  }
  return result;
}

using Words = std::vector<std::string_view>;

// Returns the length of the longest common subsequence of two lists of words.
int64_t common_length(const Words& a, const Words& b) {
  std::vector<int64_t> length(b.size() + 1);  // [j]: for the words of `a` so far and j words of `b`
  for (const std::string_view word : a) {
    int64_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t above = length[j];
      length[j] = word == b[j - 1] ? diagonal + 1 : std::max(above, length[j - 1]);
      diagonal = above;
    }
  }
  return length.back();
}

using Counts = std::map<Words, int64_t>;  // of sequences of words

Counts counts_of(const Words& words, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= words.size(); ++i)
    ++counts[Words(words.begin() + static_cast<int64_t>(i),
                   words.begin() + static_cast<int64_t>(i + n))];
  return counts;
}

// Returns the harmonic mean of precision and recall.
double f_measure(double common, double of_summary, double of_reference) {
  return common > 0 ? 2 * common / (of_summary + of_reference) : 0;
}

double f_of_sequences(const Words& summary, const Words& reference, size_t n) {
  const Counts ours = counts_of(summary, n), theirs = counts_of(reference, n);
  int64_t common = 0, of_summary = 0, of_reference = 0;
  for (const auto& [words, count] : ours) {
    of_summary += count;
    const auto found = theirs.find(words);
    if (found != theirs.end()) common += std::min(count, found->second);
  }
  for (const auto& [words, count] : theirs) of_reference += count;
  return f_measure(static_cast<double>(common), static_cast<double>(of_summary),
                   static_cast<double>(of_reference));
}

// Marks the words of `reference` in one longest common subsequence with `words`. Of several, it is
// the one that rouge-score finds: backwards, and to the side of `reference` if both are as long.
void mark_common(const Words& reference, const Words& words, std::vector<bool>& marked) {
  const size_t rows = reference.size(), columns = words.size();
  std::vector<std::vector<int64_t>> length(rows + 1, std::vector<int64_t>(columns + 1));
  for (size_t i = 1; i <= rows; ++i)
    for (size_t j = 1; j <= columns; ++j)
      length[i][j] = reference[i - 1] == words[j - 1]
                         ? length[i - 1][j - 1] + 1
                         : std::max(length[i - 1][j], length[i][j - 1]);
  for (size_t i = rows, j = columns; i > 0 && j > 0;) {
    if (reference[i - 1] == words[j - 1]) {
      marked[i - 1] = true;
      --i, --j;
    } else if (length[i][j - 1] > length[i - 1][j]) {
      --j;
    } else {
      --i;
    }
  }
}

// Returns the words of each line of a lowered text that was split before.
std::vector<Words> lines_of(const std::vector<std::string>& lowered_lines) {
  std::vector<Words> lines;
  for (const std::string& line : lowered_lines) lines.push_back(words_of(line));
  return lines;
}

std::vector<std::string> lowered_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(lowered(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

// Lin 2004, 3.2; no word counts more often than it occurs on both sides.
double f_of_lines(const std::vector<Words>& summary, const std::vector<Words>& reference) {
  std::map<std::string_view, int64_t> left_ours, left_theirs;
  double of_summary = 0, of_reference = 0, hits = 0;
  for (const Words& line : summary)
    for (const std::string_view word : line) ++left_ours[word], ++of_summary;
  for (const Words& line : reference)
    for (const std::string_view word : line) ++left_theirs[word], ++of_reference;
  for (const Words& line : reference) {
    std::vector<bool> marked(line.size());
    for (const Words& ours : summary) mark_common(line, ours, marked);
    for (size_t i = 0; i < line.size(); ++i) {
      if (!marked[i] || left_ours[line[i]] == 0 || left_theirs[line[i]] == 0) continue;
      --left_ours[line[i]], --left_theirs[line[i]], ++hits;
    }
  }
  return f_measure(hits, of_summary, of_reference);
}

}  // namespace

Rouge rouge(std::string_view summary, std::string_view reference) {
  const std::string ours = lowered(summary), theirs = lowered(reference);
  const Words words = words_of(ours), reference_words = words_of(theirs);
  const std::vector<std::string> our_lines = lowered_lines(summary),
                                 their_lines = lowered_lines(reference);
  const auto common = static_cast<double>(common_length(words, reference_words));
  return {.one = f_of_sequences(words, reference_words, 1),
          .two = f_of_sequences(words, reference_words, 2),
          .l = f_measure(common, static_cast<double>(words.size()),
                         static_cast<double>(reference_words.size())),
          .lsum = f_of_lines(lines_of(our_lines), lines_of(their_lines))};
}

}  // namespace fovea::infer
