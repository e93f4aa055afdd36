#pragma once

#include <string>

#include "fovea/infer/embed.h"

namespace fovea::cli {

// npy: one array in NumPy's format. json_lines: one JSON object per text. text: one vector per
// line, with spaces between the numbers; csv: with commas.
enum class VectorFormat { npy, json_lines, text, csv };

// Converts vectors to the bytes of an output file.
class VectorLayout {
 public:
  VectorLayout(VectorFormat format, infer::VectorPrecision precision)
      : format_(format), precision_(precision) {}
  bool has_header() const { return format_ == VectorFormat::npy; }
  // Returns the header of an array of `count` vectors. Its length does not depend on `count`.
  std::string header(int64_t count, int64_t width) const;
  // Returns the bytes of some vectors; `first` is the number of vectors written before them.
  std::string bytes(const infer::Embeddings& embeddings, int64_t first) const;

 private:
  VectorFormat format_;
  infer::VectorPrecision precision_;
};

// Warns that `cut` lines were truncated to `limit` tokens, if there are any.
void warn_cut(int64_t cut, const std::string& first_cut, int64_t limit);

}  // namespace fovea::cli
