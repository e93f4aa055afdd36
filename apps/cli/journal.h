#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "job_output.h"

namespace fovea::cli {

// The name of the first thing in which two jobs differ; empty where they are the same.
std::string difference(const nlohmann::ordered_json& one, const nlohmann::ordered_json& other);

// PATH.journal: a line of JSON that says which job writes PATH.part, then a line for each block of
// lines that is whole in there. The last whole line counts, whenever a run was killed.
class Journal {
 public:
  struct Entry {
    JobProgress progress;
    uint64_t bytes = 0;  // of PATH.part
  };

  // Takes up the journal that is there, or begins one. BadFile where it is of another job.
  Journal(const std::string& path, const nlohmann::ordered_json& job);

  const Entry& entry() const { return entry_; }  // the last
  void add(const Entry& entry);
  void restart();
  void remove() const;

 private:
  uint64_t read();
  void write(const nlohmann::ordered_json& line);
  [[noreturn]] void cannot_write() const;

  std::string output_, path_;
  nlohmann::ordered_json job_;
  Entry entry_;
  std::ofstream file_;
};

}  // namespace fovea::cli
