#include "probing/features.h"

#include <array>
#include <cmath>

namespace fovea::study {
namespace {

constexpr int64_t kLanes = 8;  // independent sums, which the compiler puts into vector registers

}  // namespace

Features::Features(int64_t width, std::vector<float> values)
    : width_(width), values_(std::move(values)) {}

void Features::add_sparse_row(std::span<const Element> elements) {
  elements_.insert(elements_.end(), elements.begin(), elements.end());
  begins_.push_back(std::ssize(elements_));
}

int64_t Features::rows() const {
  return begins_.empty() ? std::ssize(values_) / width_ : std::ssize(begins_) - 1;
}

double Features::dot(int64_t row, const double* w) const {
  if (!begins_.empty()) {
    double sum = 0;
    const Element* const end = elements_.data() + begins_[static_cast<size_t>(row) + 1];
    for (const Element* e = elements_.data() + begins_[static_cast<size_t>(row)]; e < end; ++e)
      sum += double{e->value} * w[e->column];
    return sum;
  }
  const float* const x = values_.data() + row * width_;
  std::array<double, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= width_; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[static_cast<size_t>(lane)] += double{x[i + lane]} * w[i + lane];
  double sum = 0;
  for (const double part : sums) sum += part;
  for (; i < width_; ++i) sum += double{x[i]} * w[i];
  return sum;
}

void Features::add(int64_t row, double factor, double* g) const {
  if (!begins_.empty()) {
    const Element* const end = elements_.data() + begins_[static_cast<size_t>(row) + 1];
    for (const Element* e = elements_.data() + begins_[static_cast<size_t>(row)]; e < end; ++e)
      g[e->column] += factor * double{e->value};
    return;
  }
  const float* const x = values_.data() + row * width_;
  int64_t i = 0;
  for (; i + kLanes <= width_; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) g[i + lane] += factor * double{x[i + lane]};
  for (; i < width_; ++i) g[i] += factor * double{x[i]};
}

Features pair_features(std::span<const float> vectors, int64_t width) {
  std::vector<float> values;
  values.reserve(vectors.size());
  const int64_t pairs = std::ssize(vectors) / (2 * width);
  for (int64_t i = 0; i < pairs; ++i) {
    const float* const u = vectors.data() + 2 * i * width;
    const float* const v = u + width;
    for (int64_t c = 0; c < width; ++c) values.push_back(std::abs(u[c] - v[c]));
    for (int64_t c = 0; c < width; ++c) values.push_back(u[c] * v[c]);
  }
  return {2 * width, std::move(values)};
}

}  // namespace fovea::study
