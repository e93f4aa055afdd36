#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::train {

// Files of audio, the text that is spoken in each, and its language; empty = not given.
struct Recordings {
  std::vector<std::string> files, texts, languages;  // of equal size
  std::vector<std::string> locations;                // "path:line", for errors
  int64_t empty = 0;                                 // number of skipped rows, whose text is blank
  uint64_t hash = 0;  // of the texts and of the contents of the files
};

// Reads tables with the columns audio, text and optionally language: .csv or .tsv with these names
// in the first row (see read_table()), or JSON records with these keys. The path of a recording is
// relative to the folder of its table. Throws BadFile, naming the line, if a column or a file is
// missing.
Recordings read_recordings(const std::vector<std::string>& tables);

}  // namespace fovea::train
