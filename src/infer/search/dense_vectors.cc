#include "search/dense_vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/scan.h"

namespace fovea::infer {
namespace {

constexpr int kOffset = 128;      // of the stored bytes
constexpr int64_t kStep = 1024;   // rows of one call of a kernel; their scores fit into L1
constexpr int64_t kGrain = 8192;  // rows that justify one more thread

int64_t rounded_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
int64_t code_bytes(int64_t width) { return rounded_up(width, 64); }
int64_t bit_bytes(int64_t width) { return rounded_up((width + 7) / 8, 8); }

// Rounds a vector to multiples of `scale`, its largest magnitude / 127.
template <class Code>
float round_to_codes(const float* x, int64_t width, int offset, Code* codes) {
  float largest = 0;
  for (int64_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(x[i]));
  const float factor = largest > 0 ? 127 / largest : 0;
  for (int64_t i = 0; i < width; ++i)
    codes[i] = static_cast<Code>(std::lround(x[i] * factor) + offset);
  return largest / 127;
}

void pack_bits(const float* x, int64_t width, uint8_t* bits) {
  for (int64_t i = 0; i < width; ++i)
    if (x[i] > 0) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (0x80 >> (i % 8)));
}

bool is_better(float score, int64_t number, float than, int64_t than_number) {
  return score != than ? score > than : number < than_number;
}

}  // namespace

DenseVectors::DenseVectors(int64_t rows, int64_t width, VectorPrecision precision)
    : rows_(rows), width_(width), precision_(precision) {
  if (precision == VectorPrecision::float32) {
    values_ = StoredArray<float>(zeros({rows, width}));
    return;
  }
  if (width > kMostScannedBytes)
    fail(ErrorKind::Unsupported, "vectors: {} elements; expected at most {} as bytes or bits",
         width, kMostScannedBytes);
  codes_ = StoredArray<uint8_t>(empty({rows, code_bytes(width)}, DType::u8));
  std::fill_n(codes_.row(0), codes_.size(), static_cast<uint8_t>(kOffset));
  scales_ = StoredArray<float>(zeros({rows}));
  if (precision == VectorPrecision::binary)
    bits_ = StoredArray<uint8_t>(zeros({rows, bit_bytes(width)}, DType::u8));
}

DenseVectors::DenseVectors(const SafeTensors& file, const std::string& path, int64_t rows,
                           int64_t width, VectorPrecision precision)
    : rows_(rows), width_(width), precision_(precision) {
  const auto read = [&](const char* name, DType dtype, const Shape& shape) {
    const Tensor x = file.tensor(name);
    if (x.dtype() != dtype || x.shape() != shape)
      fail(ErrorKind::BadFile,
           "{}: {} has another type or shape; expected {} vectors of {} elements", path, name, rows,
           width);
    if (dtype == DType::f32 && count_nonfinite(x) > 0)
      fail(ErrorKind::BadFile, "{}: {} has a number that is not finite; expected finite numbers",
           path, name);
    return x;
  };
  if (precision == VectorPrecision::float32) {
    values_ = StoredArray<float>(read("values", DType::f32, {rows, width}));
    return;
  }
  if (width > kMostScannedBytes)
    fail(ErrorKind::BadFile, "{}: vectors of {} elements; expected at most {}", path, width,
         kMostScannedBytes);
  codes_ = StoredArray<uint8_t>(read("codes", DType::u8, {rows, code_bytes(width)}));
  scales_ = StoredArray<float>(read("scales", DType::f32, {rows}));
  if (precision == VectorPrecision::binary)
    bits_ = StoredArray<uint8_t>(read("bits", DType::u8, {rows, bit_bytes(width)}));
}

void DenseVectors::set(int64_t row, const float* vector) {
  if (values_) {
    std::copy_n(vector, width_, values_.row(row));
    return;
  }
  *scales_.row(row) = round_to_codes(vector, width_, kOffset, codes_.row(row));
  if (bits_) pack_bits(vector, width_, bits_.row(row));
}

void DenseVectors::copy(int64_t row, const DenseVectors& from, int64_t from_row) {
  check(from.width_ == width_ && from.precision_ == precision_,
        "vectors: a copy of another precision or width; expected the same");
  const auto copy_row = [&](const auto& y, const auto& x) {
    if (y) std::copy_n(x.row(from_row), y.row(1) - y.row(0), y.row(row));
  };
  copy_row(values_, from.values_);
  copy_row(codes_, from.codes_);
  copy_row(scales_, from.scales_);
  copy_row(bits_, from.bits_);
}

std::map<std::string, Tensor> DenseVectors::tensors() const {
  if (values_) return {{"values", values_.tensor()}};
  std::map<std::string, Tensor> all = {{"codes", codes_.tensor()}, {"scales", scales_.tensor()}};
  if (bits_) all["bits"] = bits_.tensor();
  return all;
}

std::vector<float> DenseVectors::vector(int64_t row) const {
  std::vector<float> vector(static_cast<size_t>(width_));
  if (values_) {
    std::copy_n(values_.row(row), width_, vector.data());
    return vector;
  }
  const uint8_t* codes = codes_.row(row);
  const float scale = *scales_.row(row);
  for (size_t i = 0; i < vector.size(); ++i)
    vector[i] = static_cast<float>(codes[i] - kOffset) * scale;
  return vector;
}

// The best candidates so far: a heap whose first element is the worst.
class DenseSearch::Nearest {
 public:
  explicit Nearest(int64_t count) : most_(static_cast<size_t>(count)) {}
  void add(int64_t number, float score, int32_t part, int32_t row) {
    if (heap_.size() == most_ &&
        !is_better(score, number, heap_.front().score, heap_.front().number))
      return;
    if (heap_.size() == most_) {
      std::pop_heap(heap_.begin(), heap_.end(), better);
      heap_.pop_back();
    }
    heap_.push_back({number, score, part, row});
    std::push_heap(heap_.begin(), heap_.end(), better);
  }
  const std::vector<Candidate>& candidates() const { return heap_; }
  static bool better(const Candidate& a, const Candidate& b) {
    return is_better(a.score, a.number, b.score, b.number);
  }

 private:
  size_t most_;
  std::vector<Candidate> heap_;
};

DenseSearch::DenseSearch(std::span<const float> query, Similarity similarity,
                         std::vector<DensePart> parts)
    : query_(query.begin(), query.end()), similarity_(similarity), parts_(std::move(parts)) {
  const int64_t width = std::ssize(query_);
  for (const DensePart& part : parts_)
    check(part.vectors->width() == width, "search: a vector of {} elements; expected {}", width,
          part.vectors->width());
  codes_.resize(static_cast<size_t>(code_bytes(width)));
  round_to_codes(query_.data(), width, 0, codes_.data());
  bits_.resize(static_cast<size_t>(bit_bytes(width)));
  pack_bits(query_.data(), width, bits_.data());
}

// Scores rows by the shortest form of the vectors; greater = nearer.
void DenseSearch::score(const DenseVectors& vectors, int64_t first, int64_t rows,
                        float* scores) const {
  const ScanKernels& kernels = scan_kernels();
  int32_t whole[kStep];
  switch (vectors.precision_) {
    case VectorPrecision::binary:
      kernels.bit_distances(whole, vectors.bits_.row(first), rows, vectors.bits_.width(),
                            bits_.data());
      for (int64_t i = 0; i < rows; ++i) scores[i] = static_cast<float>(-whole[i]);
      return;
    case VectorPrecision::float32: {
      const bool distance = similarity_ == Similarity::euclidean;
      (distance ? kernels.squared_distances : kernels.dots)(scores, vectors.values_.row(first),
                                                            rows, vectors.width_, query_.data());
      for (int64_t i = 0; i < rows; ++i) {
        if (distance) scores[i] = -std::sqrt(scores[i]);
        // Products of large numbers may give NaN, which has no order.
        if (std::isnan(scores[i])) scores[i] = -std::numeric_limits<float>::infinity();
      }
      return;
    }
    default: {
      kernels.byte_dots(whole, vectors.codes_.row(first), rows, vectors.codes_.width(),
                        codes_.data());
      const float* scales = vectors.scales_.row(first);
      for (int64_t i = 0; i < rows; ++i) scores[i] = static_cast<float>(whole[i]) * scales[i];
    }
  }
}

float DenseSearch::similarity(const DenseVectors& vectors, int64_t row) const {
  float similarity = 0;
  if (vectors.values_) {
    score(vectors, row, 1, &similarity);
    return similarity;
  }
  const uint8_t* codes = vectors.codes_.row(row);
  double sum = 0;
  for (size_t i = 0; i < query_.size(); ++i) sum += double{query_[i]} * (codes[i] - kOffset);
  return static_cast<float>(sum * double{*vectors.scales_.row(row)});
}

// Adds the best candidates of each piece of a part.
void DenseSearch::scan(int32_t part, int64_t count, std::vector<Candidate>& found) const {
  const auto& [vectors, numbers] = parts_[static_cast<size_t>(part)];
  std::mutex mutex;
  parallel_for(
      vectors->rows(), kGrain,
      [&, &vectors = vectors, &numbers = numbers](int64_t begin, int64_t end) {
        Nearest nearest(count);
        float scores[kStep];
        const auto searched = [&](int64_t row) { return numbers[static_cast<size_t>(row)] >= 0; };
        for (int64_t row = begin; row < end;) {
          if (!searched(row)) {
            ++row;
            continue;
          }
          int64_t last = row + 1;
          while (last < end && last - row < kStep && searched(last)) ++last;
          score(*vectors, row, last - row, scores);
          for (int64_t i = row; i < last; ++i)
            nearest.add(numbers[static_cast<size_t>(i)], scores[i - row], part,
                        static_cast<int32_t>(i));
          row = last;
        }
        const std::lock_guard lock(mutex);
        found.insert(found.end(), nearest.candidates().begin(), nearest.candidates().end());
      });
}

std::vector<ScoredPassage> DenseSearch::best(int64_t count) const {
  if (parts_.empty() || count < 1) return {};
  const bool rescored = parts_.front().vectors->precision() != VectorPrecision::float32;
  const int64_t most = rescored ? count * DenseVectors::kRescored : count;
  std::vector<Candidate> found;
  for (size_t part = 0; part < parts_.size(); ++part) scan(static_cast<int32_t>(part), most, found);
  const auto kept = std::min(most, std::ssize(found));
  std::partial_sort(found.begin(), found.begin() + kept, found.end(), Nearest::better);
  found.resize(static_cast<size_t>(kept));
  std::vector<ScoredPassage> all;
  for (const Candidate& one : found) {
    const DenseVectors& vectors = *parts_[static_cast<size_t>(one.part)].vectors;
    all.push_back({one.number, rescored ? similarity(vectors, one.row) : one.score});
  }
  return best_of(std::move(all), count);
}

}  // namespace fovea::infer
