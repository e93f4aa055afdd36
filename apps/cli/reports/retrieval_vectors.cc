#include "cli/reports/retrieval_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/ordered_json.h"

namespace fovea::cli {
namespace {

// The elements [begin, end) of a vector that compressed rows share.
template <class T>
std::span<const T> row_of(const std::vector<T>& all, const std::vector<int64_t>& starts,
                          int64_t row) {
  const auto i = static_cast<size_t>(row);
  return std::span(all).subspan(static_cast<size_t>(starts[i]),
                                static_cast<size_t>(starts[i + 1] - starts[i]));
}

// Returns {"token": weight, ...}, the largest first.
std::string weights_by_token(std::span<const int32_t> indices, std::span<const float> values,
                             const text::Tokenizer& tokenizer) {
  std::vector<size_t> order(indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  std::string out = "{";
  for (const size_t i : order) {
    if (indices[i] >= tokenizer.size()) continue;  // a row of padding in the model's table
    if (out.size() > 1) out += ',';
    out += fmt::format("{}:{}", json_line(std::string(tokenizer.text_of(indices[i]))), values[i]);
  }
  return out + "}";
}

std::string joined_row(const ArrayView& rows, int64_t row, const char* separator) {
  return fmt::format("{}", fmt::join(rows.row<float>(row), separator));
}

template <class T>
void add_all(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

template <class Vectors>
void append_rows(Vectors& all, const Vectors& more) {
  const int64_t before = all.starts.back();
  for (size_t i = 1; i < more.starts.size(); ++i) all.starts.push_back(before + more.starts[i]);
  all.count += more.count;
  all.width = more.width;
  add_all(all.values, more.values);
  add_all(all.tokens, more.tokens);
  add_all(all.cut, more.cut);
}

}  // namespace

std::string sparse_text(const infer::SparseVectors& vectors) {
  std::string out;
  for (int64_t row = 0; row < vectors.count; ++row) {
    const auto indices = row_of(vectors.indices, vectors.starts, row);
    const auto values = row_of(vectors.values, vectors.starts, row);
    for (size_t i = 0; i < indices.size(); ++i)
      fmt::format_to(std::back_inserter(out), "{}{}:{}", i > 0 ? " " : "", indices[i], values[i]);
    out += '\n';
  }
  return out;
}

std::string sparse_json(const infer::SparseVectors& vectors, const text::Tokenizer& tokenizer,
                        int64_t first) {
  std::string out;
  for (int64_t row = 0; row < vectors.count; ++row) {
    const auto indices = row_of(vectors.indices, vectors.starts, row);
    const auto values = row_of(vectors.values, vectors.starts, row);
    out += fmt::format(
        "{{\"index\":{},\"tokens\":{},\"indices\":[{}],\"values\":[{}],\"weights\":{}}}\n",
        first + row, vectors.tokens[static_cast<size_t>(row)], fmt::join(indices, ","),
        fmt::join(values, ","), weights_by_token(indices, values, tokenizer));
  }
  return out;
}

std::string multi_vector_text(const infer::MultiVectors& vectors) {
  std::string out;
  for (int64_t text = 0; text < vectors.count; ++text) {
    const ArrayView rows = vectors.rows(text);
    for (int64_t row = 0; row < rows.shape[0]; ++row) out += joined_row(rows, row, " ") + "\n";
    out += '\n';
  }
  return out;
}

std::string multi_vector_json(const infer::MultiVectors& vectors, int64_t first) {
  std::string out;
  for (int64_t text = 0; text < vectors.count; ++text) {
    const ArrayView rows = vectors.rows(text);
    out += fmt::format("{{\"index\":{},\"tokens\":{},\"embedding\":[", first + text,
                       vectors.tokens[static_cast<size_t>(text)]);
    for (int64_t row = 0; row < rows.shape[0]; ++row)
      out += fmt::format("{}[{}]", row > 0 ? "," : "", joined_row(rows, row, ","));
    out += "]}\n";
  }
  return out;
}

void append(infer::SparseVectors& all, const infer::SparseVectors& more) {
  append_rows(all, more);
  add_all(all.indices, more.indices);
}

void append(infer::MultiVectors& all, const infer::MultiVectors& more) { append_rows(all, more); }

}  // namespace fovea::cli
