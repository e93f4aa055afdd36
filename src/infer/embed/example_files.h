#pragma once

// Files for evaluating or training an embedder: tables (see data/table.h) or JSON records (see
// data/json_records.h). The columns, or keys, are found by their names; a table may also have no
// names and two or three columns.

#include <string>
#include <vector>

namespace fovea::infer {

// Two texts and the similarity that people assigned to them.
struct ScoredPair {
  std::string first, second;
  double score = 0;
};
// Reads two texts and a number per record, named sentence1, sentence2 and score, or label, if that
// is from 0 to 1. Throws BadFile, naming the record, if a record is invalid.
std::vector<ScoredPair> read_scored_pairs(const std::string& file);

// pairs: two related texts (named anchor or query, positive). triplets: with a third text that is
// unrelated to the first (named negative). scored: as for read_scored_pairs().
enum class ExampleKind { pairs, triplets, scored };
struct TextExamples {
  ExampleKind kind = ExampleKind::pairs;
  std::vector<std::string> anchors, positives, negatives;
  std::vector<float> scores;  // divided by the largest score if that exceeds 1
  std::string first;          // describes the first example, for a plan
};
// Reads examples. The first record determines their kind. Throws BadFile if a record is invalid
// (naming the record), if all third columns but the first are numbers, or if there are no examples.
TextExamples read_text_examples(const std::string& file);

}  // namespace fovea::infer
