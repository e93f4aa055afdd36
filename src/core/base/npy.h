#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fovea {

// Returns the header of a .npy file (NEP 1) of an array in row-major order. `type` is NumPy's, such
// as "<f4"; shape: slowest axis first.
std::string npy_header(const std::string& type, std::span<const int64_t> shape);

}  // namespace fovea
