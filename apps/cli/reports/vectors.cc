#include "cli/reports/vectors.h"

#include <fmt/format.h>

namespace fovea::cli {
namespace {

constexpr size_t kHeaderBytes = 128;  // header of a .npy file: a multiple of 64 that fits any shape

bool is_float(VectorPrecision precision) { return precision == VectorPrecision::float32; }
bool is_signed(VectorPrecision precision) {
  return precision == VectorPrecision::int8 || precision == VectorPrecision::binary;
}

}  // namespace

// NEP 1: magic, version 1.0, header length, and a Python literal padded with spaces.
std::string VectorLayout::header(int64_t count, int64_t width) const {
  const char* type = is_float(precision_) ? "<f4" : is_signed(precision_) ? "|i1" : "|u1";
  const int64_t columns = is_float(precision_) ? width : bytes_of_vector(width, precision_);
  std::string header("\x93NUMPY\x01\x00", 8);
  const size_t rest = kHeaderBytes - header.size() - 2;
  header += static_cast<char>(rest);
  header += '\0';
  header += fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}", type,
                        count, columns);
  header.resize(kHeaderBytes - 1, ' ');
  return header + '\n';
}

std::string VectorLayout::numbers(const Embeddings& embeddings, const std::vector<uint8_t>& bytes,
                                  int64_t row, const char* separator) const {
  std::string out;
  const auto add = [&](auto value) {
    if (!out.empty()) out += separator;
    fmt::format_to(std::back_inserter(out), "{}", value);
  };
  if (is_float(precision_)) {
    const float* values = embeddings.values.data() + row * embeddings.width;
    for (int64_t i = 0; i < embeddings.width; ++i) add(values[i]);
    return out;
  }
  const int64_t size = bytes_of_vector(embeddings.width, precision_);
  for (int64_t i = row * size; i < (row + 1) * size; ++i) {
    const int byte = bytes[static_cast<size_t>(i)];
    add(is_signed(precision_) && byte > 127 ? byte - 256 : byte);
  }
  return out;
}

std::string VectorLayout::bytes(const Embeddings& embeddings, int64_t first) const {
  const std::vector<uint8_t> bytes =
      quantise_vectors(embeddings.values.data(), embeddings.count, embeddings.width, precision_);
  if (format_ == VectorFormat::npy)
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  std::string text;
  for (int64_t row = 0; row < embeddings.count; ++row) {
    if (format_ == VectorFormat::text) {
      text += numbers(embeddings, bytes, row, " ") + "\n";
    } else {
      text += fmt::format("{{\"index\":{},\"tokens\":{},\"embedding\":[{}]}}\n", first + row,
                          embeddings.tokens[static_cast<size_t>(row)],
                          numbers(embeddings, bytes, row, ","));
    }
  }
  return text;
}

}  // namespace fovea::cli
