#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::jobs {

// Reads the lines of a file, or of standard input for "-", in blocks: a file of any size takes
// bounded memory.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Returns the next lines without their line breaks: at most `lines`, and fewer if they are long.
  // Empty at the end of the file. Throws BadFile if the file cannot be read or a line is longer
  // than 64 MiB.
  std::vector<std::string> next(size_t lines);
  size_t lines_read() const { return lines_read_; }
  const std::string& name() const { return name_; }

 private:
  bool fill();  // returns false at the end of the file

  int file_;
  std::string name_, buffer_;
  size_t at_ = 0;  // start of the next line in the buffer
  size_t lines_read_ = 0;
  bool ended_ = false;
};

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
  std::unique_ptr<LineReader> reader_;
};

// Returns all lines of a file. Throws BadFile like LineReader.
std::vector<std::string> all_lines(const std::string& path);

}  // namespace fovea::jobs
