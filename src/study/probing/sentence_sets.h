#pragma once

// Files of sentences; their names of keys or columns determine what is measured.

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::study {

enum class SentenceTask { similarity, pairs, translations, topics };

struct SentenceSet {
  SentenceTask task = SentenceTask::similarity;
  std::vector<std::string> texts;      // of pair i: texts 2i and 2i + 1
  std::vector<std::string> names;      // topics: of the labels, in the order of their occurrence
  std::vector<int32_t> labels;         // of each text, or of each pair 0 or 1
  std::vector<double> scores;          // of each pair
  std::vector<std::string> locations;  // of each record

  int64_t records() const { return std::ssize(locations); }
};

// Throws BadFile, naming the record, if a record lacks a value or has another kind than the first.
SentenceSet read_sentence_set(const std::string& path);

}  // namespace fovea::study
