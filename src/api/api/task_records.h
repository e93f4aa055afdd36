#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// A record of an evaluation; see TaskData.
struct TaskRecord {
  std::string description = {};  // precedes the context and its shots
  std::string group = {};        // shots are of the same group, such as a subject
  std::string context = {};
  std::vector<std::string> choices = {};  // empty = the model generates
  int64_t gold = 0;
  std::string target = {};
  std::vector<std::string> stop = {"\n\n"};
  int64_t max_tokens = 256;
  bool rouge = false;
  bool chooses() const { return !choices.empty(); }
  const std::string& answer() const {
    return chooses() ? choices[static_cast<size_t>(gold)] : target;
  }
};

// Returns the text without white space at its ends, or at its beginning only, as Python's str.strip
// and str.lstrip do.
std::string stripped(const std::string& text, bool at_end = true);

struct TaskRecords {
  std::vector<TaskRecord> records;
  std::vector<TaskRecord> examples;  // the shots; empty = the other records
};

// Reads a file, or the data set of a named task (task_names()). Throws BadFile, with file and line,
// if a record is invalid, or if the file has no record.
TaskRecords read_task_records(const std::string& file);

// Returns the context of record `number` after those of the first `shots` examples of its group,
// each with its answer, separated by blank lines.
std::string context_with_shots(const TaskRecords& records, size_t number, int64_t shots,
                               const std::string& delimiter);

}  // namespace fovea
