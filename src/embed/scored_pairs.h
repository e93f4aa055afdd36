#pragma once

#include <string>
#include <vector>

namespace fovea {

struct ScoredPair {
  std::string first, second;
  double score = 0;
};

// CSV or TSV of two texts and a number, with or without a line of names above; or JSON lines of
// sentence1, sentence2 and score. BadFile names the line.
std::vector<ScoredPair> read_scored_pairs(const std::string& file);

// The fields of a record that begins at `at`, which moves behind it: separated by `separator`,
// those in double quotes may hold it, line ends and quotes, doubled (RFC 4180).
std::vector<std::string> next_record(const std::string& text, size_t& at, char separator);

}  // namespace fovea
