#pragma once

// Calls of the attention kernels with random inputs, for the CPU kernels and the reference.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "kernels/cpu/cpu.h"
#include "kernels/isa.h"
#include "kernels/reference/reference.h"
#include "support/gpu.h"

namespace fovea::attention_test {

// An array of numbers, which are rounded to its dtype.
struct Array {
  DType dtype = DType::f32;
  test::SharedVector<char> bytes;

  Array() = default;
  Array(DType type, int64_t count)
      : dtype(type), bytes(static_cast<size_t>(count) * size_of(type)) {}

  int64_t size() const { return static_cast<int64_t>(bytes.size() / size_of(dtype)); }
  In in() const { return {bytes.data(), dtype}; }
  Out out(bool add = false) { return {bytes.data(), dtype, add}; }
  double get(int64_t i) const {
    double value = 0;
    reference::convert({&value, DType::f64}, {bytes.data() + i * size_of(dtype), dtype}, 1);
    return value;
  }
  void set(int64_t i, double value) {
    reference::convert({bytes.data() + i * size_of(dtype), dtype}, {&value, DType::f64}, 1);
  }
  Array slice(int64_t begin, int64_t end) const {
    Array part(dtype, end - begin);
    std::memcpy(part.bytes.data(), bytes.data() + begin * size_of(dtype), part.bytes.size());
    return part;
  }
  bool operator==(const Array& other) const { return bytes == other.bytes; }
};

inline Array random_array(DType dtype, int64_t count, uint64_t seed) {
  Random random(seed, Stream::init);
  Array array(dtype, count);
  for (int64_t i = 0; i < count; ++i) array.set(i, random.normal());
  return array;
}

struct Inputs {
  AttentionShape shape;
  Array q, k, v, dy;
  Array bias, sinks;  // empty = none

  explicit Inputs(const AttentionShape& of, DType dtype = DType::f32) : shape(of) {
    const int64_t queries = of.batch * of.queries * of.heads;
    const int64_t keys = of.batch * of.capacity * of.kv_heads;
    q = random_array(dtype, queries * of.width, 1);
    k = random_array(dtype, keys * of.width, 2);
    v = random_array(dtype, keys * of.values(), 3);
    dy = random_array(dtype, queries * of.values(), 4);
  }
  // Adds a random bias [bias_tables, H, T + S - 1].
  Inputs& with_bias(DType dtype = DType::f32) {
    bias =
        random_array(dtype, shape.bias_tables * shape.heads * (shape.queries + shape.keys - 1), 5);
    return *this;
  }
  // Adds random sinks [H].
  Inputs& with_sinks(DType dtype = DType::f32) {
    sinks = random_array(dtype, shape.heads, 6);
    return *this;
  }
  AttentionShape call() const {
    AttentionShape all = shape;
    if (sinks.size() > 0) all.sinks = sinks.in();
    if (bias.size() > 0) {
      all.bias = bias.in();
      all.bias_stride = shape.queries + shape.keys - 1;
      all.bias_origin = shape.queries - 1;
    }
    return all;
  }
  int64_t rows() const { return shape.batch * shape.heads * shape.queries; }
};

struct Forward {
  Array y, lse;
  bool operator==(const Forward&) const = default;
};
struct Backward {
  Array dq, dk, dv, dbias;
  bool operator==(const Backward&) const = default;
};

inline Forward forward(decltype(Kernels::attention) kernel, const Inputs& x, DType dtype,
                       DType lse) {
  Forward result{Array(dtype, x.rows() * x.shape.values()), Array(lse, x.rows())};
  kernel(result.y.out(), result.lse.out(), x.q.in(), x.k.in(), x.v.in(), x.call());
  return result;
}

inline Backward backward(decltype(Kernels::attention_backward) kernel, const Inputs& x,
                         const Forward& of, DType dtype) {
  Backward result{Array(dtype, x.q.size()), Array(dtype, x.k.size()), Array(dtype, x.v.size()),
                  Array(dtype == DType::bf16 ? DType::f32 : dtype, x.bias.size())};
  const Out dbias = x.bias.size() > 0 ? result.dbias.out() : Out{};
  kernel(result.dq.out(), result.dk.out(), result.dv.out(), dbias, x.dy.in(), x.q.in(), x.k.in(),
         x.v.in(), of.y.in(), of.lse.in(), x.call());
  return result;
}

// Terms of the gradients of the sinks; empty without sinks.
inline Array sink_terms(decltype(Kernels::attention_sink_terms) kernel, const Inputs& x,
                        const Forward& of, DType dtype) {
  Array terms(dtype, x.sinks.size() > 0 ? x.rows() : 0);
  if (x.sinks.size() > 0) kernel(terms.out(), x.dy.in(), of.y.in(), of.lse.in(), x.call());
  return terms;
}

inline Forward cpu_forward(const Inputs& x) {
  return forward(cpu::attention, x, x.q.dtype, DType::f32);
}
inline Backward cpu_backward(const Inputs& x, const Forward& of) {
  return backward(cpu::attention_backward, x, of, x.q.dtype);
}

// Expects results that are close to the reference, relative to its largest magnitude (at least 1).
inline void expect_near(const Array& actual, const Array& expected, const char* what,
                        double tolerance = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size());
  const double rounding = actual.dtype == DType::bf16 ? 0x1p-8 : 0x1p-23;
  double largest = 1;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected.get(i))) largest = std::max(largest, std::abs(expected.get(i)));
  int wrong = 0;
  for (int64_t i = 0; i < expected.size() && wrong < 3; ++i) {
    const double a = actual.get(i), e = expected.get(i);
    if (a == e || std::abs(a - e) <= tolerance * largest + rounding * std::abs(e)) continue;
    ++wrong;
    ADD_FAILURE() << what << '[' << i << "] is " << a << ", not " << e;
  }
}

// With bf16, the weights and the gradients of the scores are rounded.
inline void expect_like_reference(const Inputs& x) {
  const double tolerance = x.q.dtype == DType::bf16 ? 0x1p-8 : 1e-5;
  const Forward truth = forward(reference::attention, x, DType::f64, DType::f64);
  const Forward actual = cpu_forward(x);
  expect_near(actual.y, truth.y, "y", tolerance);
  expect_near(actual.lse, truth.lse, "lse", tolerance);
  const Backward expected = backward(reference::attention_backward, x, actual, DType::f64);
  const Backward gradients = cpu_backward(x, actual);
  expect_near(gradients.dq, expected.dq, "dq", tolerance);
  expect_near(gradients.dk, expected.dk, "dk", tolerance);
  expect_near(gradients.dv, expected.dv, "dv", tolerance);
  expect_near(gradients.dbias, expected.dbias, "dbias", tolerance);
  expect_near(sink_terms(cpu::attention_sink_terms, x, actual, DType::f32),
              sink_terms(reference::attention_sink_terms, x, actual, DType::f64), "sink terms",
              tolerance);
  const int64_t weights = x.rows() * x.shape.keys;
  Array shown(DType::f32, weights), true_weights(DType::f64, weights);
  cpu::attention_weights(shown.out(), x.q.in(), x.k.in(), x.call());
  reference::attention_weights(true_weights.out(), x.q.in(), x.k.in(), x.call());
  expect_near(shown, true_weights, "weights");
}

inline void expect_like_reference(const AttentionShape& shape, DType dtype) {
  expect_like_reference(Inputs(shape, dtype));
}

inline AttentionShape shape_of(int64_t batch, int64_t queries, int64_t keys, int64_t heads,
                               int64_t kv_heads, int64_t width, Mask mask = {}) {
  AttentionShape shape;
  shape.batch = batch;
  shape.queries = queries;
  shape.keys = shape.capacity = keys;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.width = width;
  shape.scale = 1.0f / std::sqrt(static_cast<float>(width));
  shape.mask = std::move(mask);
  return shape;
}

inline Mask causal(int64_t first_query = 0, int64_t window = 0) {
  return {.causal = true, .first_query = first_query, .window = window, .valid = {}};
}

// Returns the peak memory of this process in KiB; 0 under AddressSanitizer, whose shadow memory
// would count.
inline int64_t most_memory() {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
#endif
}

// Runs a test on the instruction set that is its parameter, and restores the default afterwards.
class EveryIsa : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_isa(GetParam()); }
  void TearDown() override {
    use_isa("auto");
    set_threads(threads_);
  }

 private:
  int threads_ = thread_count();
};

inline std::string name_of_isa(const ::testing::TestParamInfo<std::string>& isa) {
  std::string name = isa.param;
  std::erase(name, '-');
  return name;
}

}  // namespace fovea::attention_test
