#pragma once

// Files for evaluating or training an embedder: CSV (RFC 4180), TSV, or JSON lines.

#include <string>
#include <vector>

namespace fovea {

// Two texts and the similarity that people assigned to them.
struct ScoredPair {
  std::string first, second;
  double score = 0;
};
// Reads two texts and a number per record; in JSON lines, with keys sentence1, sentence2 and score.
// Skips a header. Throws BadFile, naming the record, if a record is invalid.
std::vector<ScoredPair> read_scored_pairs(const std::string& file);

// pairs: two related texts (JSON: anchor or query, positive). triplets: with a third text that is
// unrelated to the first (JSON: negative). scored: as for read_scored_pairs().
enum class ExampleKind { pairs, triplets, scored };
struct TextExamples {
  ExampleKind kind = ExampleKind::pairs;
  std::vector<std::string> anchors, positives, negatives;
  std::vector<float> scores;  // divided by the largest score if that exceeds 1
};
// Reads examples. The first record after an optional header determines their kind. Throws BadFile
// if a record is invalid (naming the record), or if there are no examples.
TextExamples read_text_examples(const std::string& file);

// Returns the fields of the record that begins at text[at], and moves `at` to the next record.
std::vector<std::string> next_record(const std::string& text, size_t& at, char separator);

}  // namespace fovea
