#pragma once

#include <string>

#include "fovea/embed.h"

namespace fovea::cli {

// npy: NumPy's format, one array. json_lines: an object for each text. text: the numbers of each
// vector on a line.
enum class VectorFormat { npy, json_lines, text };

// How vectors stand in a file.
class VectorLayout {
 public:
  VectorLayout(VectorFormat format, VectorPrecision precision)
      : format_(format), precision_(precision) {}
  bool has_header() const { return format_ == VectorFormat::npy; }
  // Of an array of so many vectors; as long for any number.
  std::string header(int64_t count, int64_t width) const;
  // The vectors of texts, before which there were `first`.
  std::string bytes(const Embeddings& embeddings, int64_t first) const;

 private:
  std::string numbers(const Embeddings& embeddings, const std::vector<uint8_t>& bytes, int64_t row,
                      const char* separator) const;

  VectorFormat format_;
  VectorPrecision precision_;
};

}  // namespace fovea::cli
