#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/text/text_lines.h"

namespace fovea::jobs {

// Consecutive lines of one file.
struct LineBlock {
  std::string file;       // as given by the user
  size_t first = 0;       // number of lines in earlier files and blocks
  size_t in_file_at = 0;  // number of earlier lines in this file
  std::vector<std::string> lines;

  std::string name_of(size_t line) const;  // "FILE: line 7"
};

// Reads the lines of several files in turn.
class BlockReader {
 public:
  explicit BlockReader(std::vector<std::string> files);
  // Returns at most `lines` lines; empty at the end of the last file.
  std::optional<LineBlock> next(size_t lines);

 private:
  std::vector<std::string> files_;
  size_t opened_ = 0, lines_read_ = 0;
  std::unique_ptr<text::LineReader> reader_;
};

}  // namespace fovea::jobs
