#pragma once

// Text files. One set of rules holds for all of them, whoever reads them:
//   - Files that gzip or Zstandard compressed are decompressed while they are read.
//   - The text is UTF-8. A byte order mark at its beginning is not part of it. UTF-16 and UTF-32,
//     NUL and invalid UTF-8 are refused (BadFile), with the file, the line and the byte.
//   - A line ends with "\n" or "\r\n"; the last line may end with the file. Any other "\r" is a
//     character of its line, but a file whose lines all end with "\r" alone is refused.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/core/read_file.h"

namespace fovea::text {

class Decompressor;

// Returns whether a text consists of white space: " \t\r\n\v\f", no-break spaces, the other spaces
// of Unicode and byte order marks. It has no words, so that a model has nothing to read.
bool is_blank(std::string_view text);

// Returns the path without an ending .gz or .zst: it tells what a file holds.
std::string_view without_compression(std::string_view path);

// Checks the bytes of a text that arrive in blocks of any size.
class TextCheck {
 public:
  explicit TextCheck(std::string name) : name_(std::move(name)) {}  // `name`: of errors
  // Adds a block; `last`: no other follows. Returns the complete characters since the last call,
  // valid until the next one.
  std::string_view add(std::string_view block, bool last);

 private:
  void begin();
  void pass(std::string_view text);
  [[noreturn]] void refuse(std::string_view before, const char* wrong, const std::string& what);

  std::string name_, buffer_;
  bool begun_ = false;
  size_t given_ = 0;                   // bytes of the buffer that were returned
  size_t line_ = 1, before_line_ = 0;  // bytes of line `line_` so far
};

// Returns the text of a file, or of standard input for "-". Throws BadFile if the file cannot be
// read, is no text or has more than `most` bytes.
std::string read_text(const std::string& path, size_t most = kReadLimit);

// Reads the lines of a file, or of standard input for "-", in blocks: a file of any size takes
// bounded memory.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Returns the next lines without their line breaks: at most `lines`, and fewer if they are long.
  // Empty at the end of the file. Throws BadFile if the file cannot be read or is no text, or if a
  // line is longer than 64 MiB.
  std::vector<std::string> next(size_t lines);
  size_t lines_read() const { return lines_read_; }
  const std::string& name() const { return name_; }

 private:
  bool fill();  // returns false at the end of the file

  int file_;
  std::string name_, buffer_, piece_;
  std::unique_ptr<Decompressor> decompressor_;
  TextCheck check_;
  size_t at_ = 0;  // start of the next line in the buffer
  size_t lines_read_ = 0;
  bool ended_ = false;
};

// Returns all lines of a file. Throws BadFile like LineReader.
std::vector<std::string> all_lines(const std::string& path);

}  // namespace fovea::text
