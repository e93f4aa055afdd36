#pragma once

#include <string>
#include <string_view>

namespace fovea::cli {

// What a verb writes bit by bit. With a path: a file that appears under its name when it is whole,
// or not at all. Without: standard output, at once or, where the beginning is only known at the
// end, by way of a temporary file.
class OutputFile {
 public:
  enum class Beginning { as_written, known_at_the_end };
  OutputFile(const std::string& path, Beginning beginning);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void rewrite_beginning(std::string_view bytes);
  void finish();

 private:
  [[noreturn]] void fail() const;
  void copy_to_standard_output();

  std::string path_, temporary_;  // empty: standard output; an unnamed file
  int file_ = -1;                 // -1: straight to standard output
};

}  // namespace fovea::cli
