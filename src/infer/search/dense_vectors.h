#pragma once

// One vector for each row of a part of an index, as numbers, bytes or bits, and the exact search in
// them: each row is compared with the query.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "embed/modules.h"
#include "safetensors/safetensors.h"
#include "search/posting_lists.h"
#include "search/stored_array.h"

namespace fovea::infer {

class DenseVectors {
 public:
  // A multiple of the best passages by bits or bytes is compared again, by the query's numbers and
  // the passages' bytes: the rescore_multiplier of sentence-transformers.
  static constexpr int64_t kRescored = 4;

  // Room for `rows` vectors, all 0. Throws Unsupported for bytes and bits of more than 65536
  // elements.
  DenseVectors(int64_t rows, int64_t width, VectorPrecision precision);
  // Reads the tensors of a file, which stays mapped; `path` is its name in errors. Throws BadFile
  // unless they are `rows` vectors of `width` finite elements.
  DenseVectors(const SafeTensors& file, const std::string& path, int64_t rows, int64_t width,
               VectorPrecision precision);

  void set(int64_t row, const float* vector);
  // Copies a vector of the same precision, bit by bit.
  void copy(int64_t row, const DenseVectors& from, int64_t from_row);

  std::map<std::string, Tensor> tensors() const;  // to write a file
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  VectorPrecision precision() const { return precision_; }
  std::vector<float> vector(int64_t row) const;  // as stored: rounded unless float32

 private:
  friend class DenseSearch;
  int64_t rows_ = 0, width_ = 0;
  VectorPrecision precision_ = VectorPrecision::float32;
  StoredArray<float> values_;  // float32: [N, D]
  // Otherwise: [N, S] with S = D rounded up to a multiple of 64, an offset of 128 and the padding
  // 128, and [N]. Element i is (codes[i] - 128) * scale.
  StoredArray<uint8_t> codes_;
  StoredArray<float> scales_;
  // binary: [N, B] with B = D / 8 rounded up to a multiple of 8; bit i is 1 if x[i] > 0.
  StoredArray<uint8_t> bits_;
};

// The vectors of a part, with the number of each row's passage; -1 = the row is not searched.
struct DensePart {
  const DenseVectors* vectors;
  std::span<const int32_t> numbers;
};

// A query that is compared with all vectors of some parts of the same precision.
class DenseSearch {
 public:
  // `similarity`: cosine, for vectors of unit length, or dot, or euclidean for float32. Throws
  // InvalidArgument if the query has another width than the vectors.
  DenseSearch(std::span<const float> query, Similarity similarity, std::vector<DensePart> parts);

  // Returns the `count` most similar passages, sorted by descending similarity, then by number. The
  // result depends neither on the threads nor on the parts.
  std::vector<ScoredPassage> best(int64_t count) const;
  // The similarity that best() returns for a row.
  float similarity(const DenseVectors& vectors, int64_t row) const;

 private:
  struct Candidate {
    int64_t number;
    float score;
    int32_t part, row;
  };
  class Nearest;
  void scan(int32_t part, int64_t count, std::vector<Candidate>& found) const;
  void score(const DenseVectors& vectors, int64_t first, int64_t rows, float* scores) const;

  std::vector<float> query_;
  std::vector<int8_t> codes_;  // of the query, padded by 0
  std::vector<uint8_t> bits_;
  Similarity similarity_;
  std::vector<DensePart> parts_;
};

}  // namespace fovea::infer
