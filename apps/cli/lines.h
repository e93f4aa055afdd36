#pragma once

#include <string>
#include <vector>

namespace fovea::cli {

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

// All lines of a file at once.
std::vector<std::string> all_lines(const std::string& path);

}  // namespace fovea::cli
