#pragma once

// Where the passages of a part of an index come from, and which of them have the same text.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "search/stored_array.h"

namespace fovea::infer {

struct IndexedPassage {
  std::string file;  // path relative to the indexed folder
  int64_t line = 0, last_line = 0;
  std::string text;
  std::string fields = {};  // of its record: a JSON object, or empty
  int32_t position = 0;     // its number among the passages of the file
};

// Passages of a part with the same text have one row of vectors.
struct TextRows {
  std::vector<int32_t> of_passage;  // the row of each passage
  std::vector<size_t> passages;     // the first passage of each row
};
TextRows distinct_texts(const std::vector<IndexedPassage>& passages);
TextRows separate_texts(const std::vector<IndexedPassage>& passages);  // a row for each

// Returns text::hash_of_words(): that of passages which count as equal.
uint64_t group_of(std::string_view text);

// The lines of passages.jsonl.
struct PassageLines {
  std::string text;
  std::vector<int64_t> starts;  // [N + 1]
};
PassageLines lines_of(const std::vector<IndexedPassage>& passages);
// Throws BadFile, naming the file, unless the line is one of lines_of().
IndexedPassage parse_passage(std::string_view line, const std::string& path);

class PassageTable {
 public:
  struct File {
    std::string name;
    std::string date;  // of its last change, UTC: "2026-01-31T23:59:59Z"
  };

  // `groups`: of each row.
  PassageTable(const std::vector<IndexedPassage>& passages, const PassageLines& lines,
               const TextRows& rows, const std::vector<uint64_t>& groups,
               const std::map<std::string, std::string>& dates);
  // Reads the tensors of a file, which stays mapped. Throws BadFile unless every number is valid
  // for a passages.jsonl of `bytes` bytes.
  PassageTable(const SafeTensors& file, const std::string& path, int64_t bytes);

  std::map<std::string, Tensor> tensors() const;  // to write a file
  int64_t passages() const { return rows_.size(); }
  int64_t rows() const { return groups_.size(); }
  // Of each passage: its line in passages.jsonl, the hash of this line, its file, its number among
  // those of the file, its row, and its record's fields.
  std::string_view line(std::string_view jsonl, int64_t passage) const;
  uint64_t hash(int64_t passage) const { return static_cast<uint64_t>(hashes_[passage]); }
  int32_t file(int64_t passage) const { return file_of_[passage]; }
  int32_t position(int64_t passage) const { return position_[passage]; }
  int32_t row(int64_t passage) const { return rows_[passage]; }
  int32_t fields(int64_t passage) const { return field_of_[passage]; }
  uint64_t group(int64_t row) const { return static_cast<uint64_t>(groups_[row]); }

  const std::vector<File>& files() const { return files_; }  // ascending
  // The different objects of fields of the passages' records; the first is empty.
  std::vector<std::string> field_objects() const;

 private:
  std::vector<File> files_;
  StoredArray<int64_t> starts_, hashes_;                       // [N + 1], [N]
  StoredArray<int32_t> file_of_, position_, rows_, field_of_;  // [N]
  StoredArray<int64_t> groups_;                                // [rows]
  StoredArray<uint8_t> names_, objects_;                       // lines of JSON
};

}  // namespace fovea::infer
