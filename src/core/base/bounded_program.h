#pragma once

// Programs that read untrusted files: with limits, without a shell, and without a network.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

struct ProgramLimits {
  double seconds = 60;
  size_t output_bytes = size_t{64} << 20;
  uint64_t memory_bytes = uint64_t{2} << 30;  // of each process
};

// Returns the path of a program in the folders of $PATH; unset if no folder has it.
std::optional<std::string> find_program(const std::string& name);

// Runs a program, whose standard input is the file `input`, and returns its standard output. The
// program and those that it starts get a small environment, cannot open network connections, and
// end when the function returns. `program`: its path and its arguments. Throws BadFile if `input`
// cannot be read, and Failed, with one line, if the program cannot be started, reports an error, or
// exceeds a limit, or if `stop`, which is called meanwhile, returns true.
std::string run_bounded(const std::vector<std::string>& program, const std::string& input,
                        const ProgramLimits& limits = {}, const std::function<bool()>& stop = {});

}  // namespace fovea
