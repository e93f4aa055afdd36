#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::jobs {

// The lines of a file, or of standard input for "-", a block at a time: a file of any size passes
// through bounded memory.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next lines without their ends: at most `lines`, and fewer where these are long. None at the
  // end of the file. Error BadFile where it cannot be read, or for a line beyond 64 MB.
  std::vector<std::string> next(size_t lines);
  size_t lines_read() const { return lines_read_; }
  const std::string& name() const { return name_; }

 private:
  bool fill();  // false at the end of the file

  int file_;
  std::string name_, buffer_;
  size_t at_ = 0, lines_read_ = 0;  // where the next line begins in the buffer
  bool ended_ = false;
};

// Lines that stand one after the other in one file.
struct LineBlock {
  std::string file;       // as users call it
  size_t first = 0;       // lines of all files before these
  size_t in_file_at = 0;  // lines of this file before these
  std::vector<std::string> lines;

  std::string name_of(size_t line) const;  // "FILE: line 7"
};

// The lines of several files, one after the other.
class BlockReader {
 public:
  explicit BlockReader(std::vector<std::string> files);
  // At most `lines` of them; nothing at the end of all files.
  std::optional<LineBlock> next(size_t lines);

 private:
  std::vector<std::string> files_;
  size_t opened_ = 0, lines_read_ = 0;
  std::unique_ptr<LineReader> reader_;
};

// All lines of a file at once.
std::vector<std::string> all_lines(const std::string& path);

}  // namespace fovea::jobs
