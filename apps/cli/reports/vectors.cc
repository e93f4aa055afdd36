#include "cli/reports/vectors.h"

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <vector>

#include "base/npy.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

template <class T>
std::string joined(std::span<const T> elements, const char* separator) {
  std::string out;
  for (const T element : elements) {
    if (!out.empty()) out += separator;
    fmt::format_to(std::back_inserter(out), "{}", element);
  }
  return out;
}

// Returns the numbers of one vector [count, C].
std::string numbers(const ArrayView& vectors, int64_t row, const char* separator) {
  switch (vectors.dtype) {
    case DType::f32: return joined(vectors.row<float>(row), separator);
    case DType::i8: return joined(vectors.row<int8_t>(row), separator);
    default: return joined(vectors.row<uint8_t>(row), separator);
  }
}

}  // namespace

std::string VectorLayout::header(int64_t count, int64_t width) const {
  const DType dtype = infer::dtype_of(precision_);
  const bool is_float = dtype == DType::f32;
  const char* type = is_float ? "<f4" : dtype == DType::i8 ? "|i1" : "|u1";
  const int64_t columns = is_float ? width : infer::bytes_of_vector(width, precision_);
  return npy_header(type, std::vector<int64_t>{count, columns});
}

std::string VectorLayout::bytes(const infer::Embeddings& embeddings, int64_t first) const {
  const infer::CompactVectors compact = infer::quantise_vectors(embeddings.view(), precision_);
  if (format_ == VectorFormat::npy)
    return {reinterpret_cast<const char*>(compact.bytes.data()), compact.bytes.size()};
  const ArrayView vectors = compact.view();
  std::string text;
  for (int64_t row = 0; row < embeddings.count; ++row) {
    if (format_ != VectorFormat::json_lines) {
      text += numbers(vectors, row, format_ == VectorFormat::csv ? "," : " ") + "\n";
    } else {
      text += fmt::format("{{\"index\":{},\"tokens\":{},\"embedding\":[{}]}}\n", first + row,
                          embeddings.tokens[static_cast<size_t>(row)], numbers(vectors, row, ","));
    }
  }
  return text;
}

void warn_cut(int64_t cut, const std::string& first_cut, int64_t limit) {
  if (cut == 0) return;
  note(fmt::format(
      "warning: {} truncated to {} tokens, the first at {}; --no-truncate refuses such lines\n",
      cut == 1 ? "1 line" : fmt::format("{} lines", cut), limit, printable(first_cut)));
}

}  // namespace fovea::cli
