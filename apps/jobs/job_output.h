#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fovea::jobs {

// How far a job over lines has come.
struct JobProgress {
  int64_t lines = 0, tokens = 0;
  int64_t cut = 0;          // lines that lost their end
  std::string first_cut;    // where the first of them is
  uint64_t lines_hash = 0;  // of the lines themselves, to know them again
};

// The hash of lines that follow others, 0 where there are none.
uint64_t hash_lines(uint64_t before, const std::vector<std::string>& lines);

// What a job over lines writes, block by block, in the order of the lines.
class JobOutput {
 public:
  virtual ~JobOutput() = default;
  // The progress of an earlier run of the same job, which this one resumes.
  virtual JobProgress progress() const { return {}; }
  virtual void add(std::string_view bytes, const JobProgress& after) = 0;
  // All is there; `beginning`, which may be empty, takes the place of the first bytes.
  virtual void finish(std::string_view beginning) = 0;
};

// With a path: the file appears under its name when it is complete. Until then PATH.part holds the
// finished output and PATH.journal the progress, so that the same job resumes after it was stopped
// or killed. `job` holds every setting besides the lines that decides the bytes; throws BadFile if
// PATH.part belongs to another job. A device or a FIFO is written directly. Without a path:
// standard output, at once or, if the beginning is known only at the end, through a temporary file.
std::unique_ptr<JobOutput> open_job_output(const std::string& path, bool beginning_at_the_end,
                                           const nlohmann::ordered_json& job);

}  // namespace fovea::jobs
