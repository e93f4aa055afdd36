#pragma once

#include <string>

#include "fovea/embed.h"

namespace fovea::cli {

// npy: NumPy's format, one array. json_lines: one object per text. text: one vector per line.
enum class VectorFormat { npy, json_lines, text };

// Converts vectors to the bytes of an output file.
class VectorLayout {
 public:
  VectorLayout(VectorFormat format, VectorPrecision precision)
      : format_(format), precision_(precision) {}
  bool has_header() const { return format_ == VectorFormat::npy; }
  // The header of an array of `count` vectors. Its length does not depend on `count`.
  std::string header(int64_t count, int64_t width) const;
  // The bytes of some vectors; `first` = number of vectors written before them.
  std::string bytes(const Embeddings& embeddings, int64_t first) const;

 private:
  std::string numbers(const Embeddings& embeddings, const std::vector<uint8_t>& bytes, int64_t row,
                      const char* separator) const;

  VectorFormat format_;
  VectorPrecision precision_;
};

}  // namespace fovea::cli
