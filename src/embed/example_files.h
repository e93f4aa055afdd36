#pragma once

// Files that an embedder is measured on or learns from: CSV (RFC 4180), TSV, or JSON lines.

#include <string>
#include <vector>

namespace fovea {

// Two texts and how alike people find them.
struct ScoredPair {
  std::string first, second;
  double score = 0;
};
// Two texts and a number; of JSON lines sentence1, sentence2 and score. BadFile names the record.
std::vector<ScoredPair> read_scored_pairs(const std::string& file);

// pairs: two texts that belong together (JSON: anchor or query, positive). triplets: and a third
// that does not belong to the first (negative). scored: as above.
enum class ExampleKind { pairs, triplets, scored };
struct TextExamples {
  ExampleKind kind = ExampleKind::pairs;
  std::vector<std::string> anchors, positives, negatives;
  std::vector<float> scores;  // divided by the largest, where that is more than 1
};
// The first record decides the kind; a line of names above is passed over.
TextExamples read_text_examples(const std::string& file);

// Returns the fields of the record at `at`, and moves `at` after it.
std::vector<std::string> next_record(const std::string& text, size_t& at, char separator);

}  // namespace fovea
