#pragma once

// The texts of the files in a folder, whatever their format.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fovea::infer {

struct Document {
  std::string text;
  int64_t line = 0;  // of the file, which has the whole text; 0 = each line of the file is one
  std::string fields = {};  // of a record: a JSON object; empty: it is no record
};

class DocumentReader {
 public:
  // `stop`: called while programs read files; if it returns true, the reader throws Failed.
  explicit DocumentReader(std::function<bool()> stop = {}) : stop_(std::move(stop)) {}

  // Returns whether a program is needed to read a file with this name: a PDF, HTML or DOCX file.
  static bool needs_program(const std::string& file);

  // Returns the texts of a file. One that a program cannot read, or that is not installed, has
  // none, and unread() says why. The records of a .jsonl file whose first line is an object with a
  // "text" are separate texts. Throws BadFile, naming the line, if another line is not one.
  std::vector<Document> read(const std::string& folder, const std::string& file);

  // A line for each file that could not be read, or for all that need the same program.
  std::vector<std::string> unread() const;

 private:
  std::vector<Document> read_by_program(const std::string& folder, const std::string& file);

  struct Missing {
    int64_t files = 0;
    std::string first;
  };
  std::function<bool()> stop_;
  std::vector<std::string> unread_;
  std::map<std::string, Missing> missing_;  // by the packages of programs
};

// Returns the date of a file's last change, in UTC: "2026-01-31T23:59:59Z".
std::string date_of_file(const std::string& path);

}  // namespace fovea::infer
