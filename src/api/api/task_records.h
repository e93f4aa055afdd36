#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// A record of an evaluation; see TaskData.
struct TaskRecord {
  std::string context;
  std::vector<std::string> choices;  // empty = the model generates
  int64_t gold = 0;
  std::string target;
  std::vector<std::string> stop = {"\n\n"};
  int64_t max_tokens = 256;
  bool rouge = false;
  bool chooses() const { return !choices.empty(); }
  const std::string& answer() const {
    return chooses() ? choices[static_cast<size_t>(gold)] : target;
  }
};

// Throws BadFile, with file and line, if a record is invalid or there is none.
std::vector<TaskRecord> read_task_records(const std::string& path);

// Returns the context of record `number` after those of the first `shots` other records, each with
// its answer, separated by blank lines.
std::string context_with_shots(const std::vector<TaskRecord>& records, size_t number, int64_t shots,
                               const std::string& delimiter);

}  // namespace fovea
