#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/files.h"
#include "lab/experiment.h"

namespace fovea::lab {

// The finished runs of an experiment: FOLDER/runs.jsonl has a line with the settings and a line for
// each run, added when the run ends. An incomplete last line, of a killed process, is dropped.
class Journal {
 public:
  // Creates the folder, or opens it and locks it. Throws InvalidArgument if it has runs of other
  // settings, BadFile if a line is damaged.
  Journal(const std::string& folder, const nlohmann::ordered_json& settings);

  // Returns null if the journal lacks the run. The result is valid until the next call of add().
  const Readings* find(const LabRun& run) const;
  void add(const LabRun& run, const Readings& readings, double seconds);
  double seconds() const { return seconds_; }  // of all runs

 private:
  void read_line(const std::string& line, int64_t number, const nlohmann::ordered_json& settings);
  void write() const;

  std::string path_;
  std::optional<DirectoryLock> lock_;
  std::string lines_;
  struct Run : LabRun {
    Readings readings;
  };
  std::vector<Run> runs_;
  double seconds_ = 0;
};

}  // namespace fovea::lab
