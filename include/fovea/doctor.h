#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

struct Finding {
  std::string topic;    // "instruction sets", "cores", ...
  std::string message;  // plain words
  bool good = true;
};

// What this machine offers and what is wrong with it; with a folder, also whether the model in it
// is whole.
std::vector<Finding> doctor(const std::string& folder = "");

// The size of the compute team from now on, instead of what OMP_NUM_THREADS or the machine says.
void set_threads(int count);
int threads();

// Of a model's directory or .gguf file: of the files in it that decide what the model computes.
uint64_t model_fingerprint(const std::string& path);

std::string version();               // "0.1.0"
std::string missing_cpu_features();  // empty = fovea runs here; else the features this CPU lacks

}  // namespace fovea
