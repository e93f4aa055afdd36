#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::jobs {

// The progress of a job over lines.
struct JobProgress {
  int64_t lines = 0, tokens = 0;  // finished so far
  int64_t cut = 0;                // number of truncated lines
  std::string first_cut;          // name of the first truncated line: "FILE: line 7"
  int64_t errors = 0;             // number of lines whose output is an error
  std::string first_error;        // the first of these errors
  uint64_t lines_hash = 0;        // hash of these lines
};

// Extends a hash by more lines; 0 starts a new hash.
uint64_t hash_lines(uint64_t before, const std::vector<std::string>& lines);

// The output of a job over lines, block by block, in the order of the lines.
class JobOutput {
 public:
  virtual ~JobOutput() = default;
  // Returns the progress of the earlier run that this run resumes; zero if there is none.
  virtual JobProgress progress() const { return {}; }
  // Appends the opening, with zero progress, or the output of a block; `after` is the progress with
  // it.
  virtual void add(std::string_view bytes, const JobProgress& after) = 0;
  // Completes the output; `beginning` replaces the first bytes and may be empty.
  virtual void finish(std::string_view beginning) = 0;
};

// Returns whether the path is standard output, a device or a FIFO, whose output cannot be resumed.
bool is_stream(const std::string& path);

// Opens the output. A file appears at `path` when it is complete. Until then PATH.part contains the
// finished output and PATH.journal the progress, so that the same job resumes after it was stopped
// or killed. `job` contains every setting, besides the lines, that affects the bytes; throws
// BadFile if PATH.part belongs to another job. An empty path means standard output. A block is
// written to standard output, a device or a FIFO as soon as it is added; with
// `beginning_at_the_end`, the output is collected in a temporary file and written by finish().
std::unique_ptr<JobOutput> open_job_output(const std::string& path, bool beginning_at_the_end,
                                           const nlohmann::ordered_json& job);

}  // namespace fovea::jobs
