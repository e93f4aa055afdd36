#pragma once

// The inputs of a linear classifier: rows of numbers.

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::study {

// Rows of numbers: dense, or sparse, which hold only the elements other than 0.
class Features {
 public:
  // Dense rows: values [n, width].
  Features(int64_t width, std::vector<float> values);
  // An empty list of sparse rows.
  explicit Features(int64_t width) : width_(width), begins_{0} {}

  struct Element {
    int32_t column;
    float value;
  };
  void add_sparse_row(std::span<const Element> elements);

  int64_t width() const { return width_; }
  int64_t rows() const;
  // Returns the sum of row x times w, in a fixed order.   w [width]
  double dot(int64_t row, const double* w) const;
  // Adds factor * row to g.   g [width]
  void add(int64_t row, double factor, double* g) const;

 private:
  int64_t width_;
  std::vector<float> values_;      // dense rows
  std::vector<Element> elements_;  // sparse rows: row i has [begins_[i], begins_[i + 1])
  std::vector<int64_t> begins_;    // empty for dense rows
};

// Returns the features of pairs of texts with vectors u and v, rows 2i and 2i + 1 of `vectors`
// [2n, width]: |u - v| and u v, element by element -> [n, 2 width]
Features pair_features(std::span<const float> vectors, int64_t width);

}  // namespace fovea::study
