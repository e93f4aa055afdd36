#pragma once

// Files for evaluating or training an embedder: tables (see data/table.h) or JSON records (see
// data/json_records.h). The columns, or keys, are found by their names; a table may also have no
// names: two texts, further texts, and numbers in the last column.

#include <cstdint>
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

// pairs: two related texts (named anchor or query, positive). triplets: with one or more texts that
// are unrelated to the first (named negative, negative_1, negative_2, ...). scored: as for
// read_scored_pairs(). The names are those of data sets for sentence-transformers.
enum class ExampleKind { pairs, triplets, scored };
struct TextExamples {
  ExampleKind kind = ExampleKind::pairs;
  std::vector<std::vector<std::string>> texts;  // columns: anchors, positives, negatives
  std::vector<float> scores;  // of scored pairs, divided by the largest score if that exceeds 1
  // Of triplets, `teacher_scores` for each example: those of the positive and of each negative, or
  // their differences, one less.
  std::vector<float> teacher;
  int64_t teacher_scores = 0;
  std::string first;  // describes the first example, for a plan

  int64_t count() const { return std::ssize(texts[0]); }
  int64_t negatives() const { return std::ssize(texts) - 2; }  // of each example
};
// Reads examples. The first record determines their kind. With `teacher`, triplets need the scores
// of a teacher: a number or a list named scores, label or margin. Throws BadFile if a record is
// invalid (naming the record), if all third columns but the first are numbers, or if there are no
// examples.
TextExamples read_text_examples(const std::string& file, bool teacher = false);

}  // namespace fovea::infer
