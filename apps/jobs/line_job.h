#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "jobs/job_output.h"
#include "jobs/lines.h"

namespace fovea::jobs {

// The result of a block of lines.
struct BlockResult {
  std::string bytes;      // the output of the block
  int64_t tokens = 0;     // number of tokens, read or generated
  int64_t cut = 0;        // number of truncated lines
  std::string first_cut;  // name of the first truncated line: "FILE: line 7"
  int64_t errors = 0;     // number of lines whose output is an error
  std::string first_error = {};
};

// A job that converts the lines of files to bytes, each block of lines independently, so that
// several processes can share the blocks and a stopped job can be resumed.
struct LineJob {
  std::vector<std::string> files;  // empty = standard input
  std::string out;                 // empty = standard output
  nlohmann::ordered_json key;      // settings, besides the lines, that affect the bytes
  size_t block_lines = 1024;       // lines that are computed together
  size_t at_once = 1;   // blocks that a process computes at once; above 1, each on its own thread
  std::string opening;  // bytes written before the output of the first block
  // Returns the text that replaces the opening once the number of lines is known; it must have the
  // same length.
  std::function<std::string(int64_t lines)> beginning;
  // Called on any thread, one call at a time, at the start and after each block that was written:
  // the progress, and the number of bytes of these lines.
  std::function<void(const JobProgress& progress, uint64_t bytes)> report;
};

// Writes the result of `compute` for each block, in the order of the lines. Under mpirun, ranks
// share the blocks. Returns nothing if a signal stopped the job, or on a rank other than 0.
std::optional<JobProgress> run_lines(const LineJob& job,
                                     const std::function<BlockResult(const LineBlock&)>& compute);

}  // namespace fovea::jobs
