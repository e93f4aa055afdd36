#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "jobs/job_output.h"

namespace fovea::jobs {

// Returns the name of the first setting that differs between two jobs; empty if they are equal.
std::string difference(const nlohmann::ordered_json& one, const nlohmann::ordered_json& other);

// PATH.journal: a line of JSON that describes the job that writes PATH.part, then a line for each
// complete block of lines in PATH.part. Its last complete line is valid even if the process was
// killed.
class Journal {
 public:
  struct Entry {
    JobProgress progress;
    uint64_t bytes = 0;   // of PATH.part
    uint64_t output = 0;  // hash of these bytes
  };
  // Returns whether PATH.part still contains the bytes of an entry; called in the order of the
  // entries.
  using Holds = std::function<bool(const Entry&)>;

  // Continues an existing journal, or starts a new one. The first entry for which `holds` returns
  // false and all later entries are discarded. Throws BadFile if the file belongs to another job or
  // is not a journal.
  Journal(const std::string& path, const nlohmann::ordered_json& job, const Holds& holds);

  const Entry& entry() const { return entry_; }  // the last entry
  bool is_damaged() const { return damaged_; }   // PATH.part lacked an entry's bytes
  void add(const Entry& entry);
  void remove() const;

 private:
  void restart();
  uint64_t read(const Holds& holds);
  void write(const nlohmann::ordered_json& line);
  [[noreturn]] void not_a_journal() const;
  [[noreturn]] void cannot_write() const;

  std::string output_, path_;
  nlohmann::ordered_json job_;
  Entry entry_;
  bool damaged_ = false;
  std::ofstream file_;
};

}  // namespace fovea::jobs
