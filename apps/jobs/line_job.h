#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "jobs/job_output.h"
#include "jobs/lines.h"

namespace fovea::jobs {

// What became of a block of lines.
struct BlockResult {
  std::string bytes;      // as they stand in the output
  int64_t tokens = 0;     // of all lines
  int64_t cut = 0;        // lines that lost their end
  std::string first_cut;  // where the first of them is
};

// Lines of files that become bytes, each block of lines on its own: so several processes can share
// them, and a job that was stopped can go on.
struct LineJob {
  std::vector<std::string> files;  // none = standard input
  std::string out;                 // empty = standard output
  nlohmann::ordered_json key;      // what decides the bytes besides the lines
  size_t block_lines = 1024;       // that are computed together
  std::string opening;             // before all lines
  // Returns the text that replaces the opening once the number of lines is known; it must have the
  // same length.
  std::function<std::string(int64_t lines)> beginning;
};

// Writes what `compute` makes of each block, in the order of the lines. Under mpirun its ranks
// share the blocks. Nothing where a signal stopped it, or on a rank that only helps.
std::optional<JobProgress> run_lines(const LineJob& job,
                                     const std::function<BlockResult(const LineBlock&)>& compute);

}  // namespace fovea::jobs
