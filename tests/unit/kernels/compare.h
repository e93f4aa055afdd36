#pragma once

// Compares fast kernels with the reference: random arrays of any dtype, the distance between
// results, and a test that runs on each instruction set.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/reference/number.h"
#include "support/gpu.h"

namespace fovea::test {

// Numbers in the format that a kernel reads. Arrays are compared by their bits.
class Array {
 public:
  Array(int64_t size, DType dtype)
      : dtype_(dtype), bytes_(static_cast<size_t>(size) * size_of(dtype)), size_(size) {}
  Array(const std::vector<double>& values, DType dtype)
      : Array(static_cast<int64_t>(values.size()), dtype) {
    for (int64_t i = 0; i < size_; ++i) reference::put(out(), i, values[static_cast<size_t>(i)]);
  }
  static Array normal(int64_t size, DType dtype, uint64_t seed, double deviation = 1) {
    Random random(seed, Stream::init);
    Array array(size, dtype);
    for (int64_t i = 0; i < size; ++i) reference::put(array.out(), i, deviation * random.normal());
    return array;
  }

  int64_t size() const { return size_; }
  DType dtype() const { return dtype_; }
  double operator[](int64_t i) const { return reference::get(in(), i); }
  In in() const { return {bytes_.data(), dtype_}; }
  Out out(bool add = false) { return {bytes_.data(), dtype_, add}; }
  float* floats() { return reinterpret_cast<float*>(bytes_.data()); }
  bool operator==(const Array& other) const {
    return dtype_ == other.dtype_ && bytes_ == other.bytes_;
  }

 private:
  DType dtype_;
  SharedVector<unsigned char> bytes_;  // a kernel of a GPU may get the array
  int64_t size_;
};

// The allowed distance from the reference: the mean squared error divided by the mean square, and
// the largest error divided by the largest number. It depends only on the dtype: the rounding error
// of bf16 is at most 2^-8 of a number.
struct Tolerance {
  double nmse, most;
};
inline Tolerance tolerance(DType dtype) {
  return dtype == DType::bf16 ? Tolerance{0x1p-16, 0x1p-7} : Tolerance{1e-12, 4e-6};
}

inline testing::AssertionResult close(const Array& actual, const Array& expected) {
  if (actual.size() != expected.size()) return testing::AssertionFailure() << "sizes differ";
  double error = 0, square = 0, most_error = 0, most = 0;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (std::isnan(a) && std::isnan(e)) continue;
    if (std::isinf(e) && a == e) continue;
    if (!std::isfinite(a) || !std::isfinite(e)) {
      return testing::AssertionFailure() << "element " << i << " is " << a << ", expected " << e;
    }
    error += (a - e) * (a - e);
    square += e * e;
    most_error = std::max(most_error, std::abs(a - e));
    most = std::max(most, std::abs(e));
  }
  const Tolerance allowed = tolerance(actual.dtype());
  if (error <= allowed.nmse * square && most_error <= allowed.most * most)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "NMSE " << error / square << ", largest error " << most_error << " of " << most;
}

// Calls run(kernels, outputs) on copies of `outputs`, with the reference and with the CPU's table
// on each ISA with 1 to 3 threads. Results must be close to the reference's; on the CPU, they must
// have the same bits on every ISA and with any number of threads.
template <class Run>
void compare_everywhere(const std::vector<Array>& outputs, const std::string& what,
                        const Run& run) {
  std::vector<Array> expected = outputs, first;
  run(reference_kernels(), expected);
  const int threads = thread_count();
  const std::string before = instruction_set();
  for (const std::string& isa : testable_isas()) {
    for (int count : {1, 2, 3}) {
      use_isa(isa);
      set_threads(count);
      std::vector<Array> actual = outputs;
      run(cpu_kernels(), actual);
      if (first.empty()) {
        first = actual;
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_TRUE(close(actual[i], expected[i])) << what << ", output " << i << ", " << isa;
        }
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_TRUE(actual[i] == first[i]) << what << ", output " << i << ": different bits on "
                                           << isa << " with " << count << " threads";
      }
    }
  }
  use_isa(before);
  set_threads(threads);
}

// The same, and the GPU device must have the bits of the CPU, in any order of its threads.
template <class Run>
void compare_with_gpu(const std::vector<Array>& outputs, const std::string& what, const Run& run) {
  compare_everywhere(outputs, what, run);
  std::vector<Array> expected = outputs;
  run(cpu_kernels(), expected);
  for (const uint64_t order : {1, 2}) {
    cuda::set_model_order(order);
    std::vector<Array> actual = outputs;
    run(gpu_kernels(), actual);
    wait_for_gpu();
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(actual[i] == expected[i])
          << what << ", output " << i << ": other bits on the model of a GPU, order " << order;
  }
}

}  // namespace fovea::test
