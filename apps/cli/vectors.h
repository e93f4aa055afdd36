#pragma once

#include <memory>
#include <string>

#include "fovea/embed.h"
#include "output_file.h"

namespace fovea::cli {

// npy: NumPy's format, one array. json_lines: an object for each text. text: the numbers of each
// vector on a line.
enum class VectorFormat { npy, json_lines, text };

// Writes vectors as they come.
class VectorWriter {
 public:
  VectorWriter(const std::string& path, VectorFormat format, VectorPrecision precision);
  void add(const Embeddings& embeddings);
  void finish(int64_t width);  // `width` counts where there was no vector

 private:
  std::string npy_header(int64_t width) const;
  std::string numbers(const Embeddings& embeddings, const std::vector<uint8_t>& bytes, int64_t row,
                      const char* separator) const;

  OutputFile out_;
  VectorFormat format_;
  VectorPrecision precision_;
  int64_t count_ = 0;
};

}  // namespace fovea::cli
