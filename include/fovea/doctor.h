#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

struct Finding {
  std::string topic;    // "instruction sets", "cores", ...
  std::string message;  // one line
  bool good = true;     // false = a problem
};

// Checks this machine and, with `folder`, whether the model and the snapshots in it are intact. A
// damaged file is a finding, not an error.
std::vector<Finding> doctor(const std::string& folder = "");

// Sets the number of compute threads, instead of OMP_NUM_THREADS or the number of available CPUs.
// Throws InvalidArgument if `count` is less than 1. Applies to all computations that begin
// afterwards, on any thread.
void set_threads(int count);
int threads();  // the number of compute threads

// Returns a hash of a .gguf file, or of the files in a model directory that determine its results.
// Reads these files completely. Throws BadFile if one cannot be read.
uint64_t model_fingerprint(const std::string& path, bool with_base = true);

std::string version();  // "0.2.0"
// Returns the instruction set that is used on this CPU, such as "avx512": a value of FOVEA_ISA.
std::string instruction_set();
// Returns the CPU features that fovea needs and this CPU lacks; empty = none.
std::string missing_cpu_features();

}  // namespace fovea
