#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/isa.h"
#include "kernels/sum_tree.h"
#include "unit/kernels/units.h"

namespace fovea {
namespace {

// Returns floats that are exact in bf16, so that both dtypes have the same expected results.
std::vector<float> random_floats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = widen(narrow(normal(generator)));
  return values;
}

// An array of fp32 or bf16 numbers.
class Array {
 public:
  Array(std::vector<float> values, DType dtype) : floats_(std::move(values)), dtype_(dtype) {
    for (const float value : floats_) halves_.push_back(narrow(value));
  }
  In in() const {
    return {dtype_ == DType::f32 ? static_cast<const void*>(floats_.data()) : halves_.data(),
            dtype_};
  }
  Out out(bool add) { return {const_cast<void*>(in().data), dtype_, add}; }
  float operator[](size_t i) const { return dtype_ == DType::f32 ? floats_[i] : widen(halves_[i]); }
  std::vector<uint32_t> bits() const {
    std::vector<uint32_t> bits;
    for (size_t i = 0; i < floats_.size(); ++i) bits.push_back(std::bit_cast<uint32_t>((*this)[i]));
    return bits;
  }

 private:
  std::vector<float> floats_;
  std::vector<bf16> halves_;
  DType dtype_;
};

struct Case {
  GemmShape shape;
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  bool bias = false, add = false;
};

size_t size(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns); }

void expect_oracle(const Case& test) {
  const auto& [m, n, k, transpose_a, transpose_b, units, second, kept] = test.shape;
  SCOPED_TRACE(fmt::format("m {} n {} k {} transposes {} {} dtypes {} {} {} bias {} add {} isa {}",
                           m, n, k, transpose_a, transpose_b, name_of(test.a), name_of(test.b),
                           name_of(test.c), test.bias, test.add, instruction_set()));
  const Array a(random_floats(size(m, k), 1), test.a), b(random_floats(size(k, n), 2), test.b);
  const Array bias(random_floats(static_cast<size_t>(n), 3), test.b);
  const std::vector<float> old = random_floats(size(m, n), 4);
  Array c(test.add ? old : std::vector<float>(size(m, n), NAN), test.c);
  cpu::gemm(c.out(test.add), a.in(), b.in(), test.bias ? bias.in() : In{}, test.shape);
  int wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 1;
      for (int64_t l = 0; l < k; ++l) {
        const double product =
            double{
                a[size(transpose_a ? l : i, transpose_a ? m : k) + size(transpose_a ? i : l, 1)]} *
            b[size(transpose_b ? j : l, transpose_b ? k : n) + size(transpose_b ? l : j, 1)];
        sum += product;
        magnitude += std::abs(product);
      }
      if (test.bias) sum += bias[static_cast<size_t>(j)];
      if (test.add) sum += old[size(i, n) + size(j, 1)];
      const double rounding =
          test.c == DType::bf16 ? std::abs(sum) / 256 : 0;  // half a unit in the last of 8 bits
      const double error = std::abs(c[size(i, n) + size(j, 1)] - sum);
      // The roundings of a chain partly cancel, so the error is a few times 2^-24 of the sum of
      // magnitudes; the factor 8 covers the worst of many elements.
      if (!(error <= rounding + magnitude * 6e-8 * 8)) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0);
  if (units.count > 1 || second.k > 0) return;
  // The first product with a kept operand packs it, the second one uses it.
  KeptOperand memory;
  GemmShape keeping = test.shape;
  keeping.kept = &memory;
  for (int i = 0; i < 2; ++i) {
    Array again(test.add ? old : std::vector<float>(size(m, n), NAN), test.c);
    cpu::gemm(again.out(test.add), a.in(), b.in(), test.bias ? bias.in() : In{}, keeping);
    EXPECT_EQ(again.bits(), c.bits()) << "with a kept operand";
  }
}

class GemmTest : public testing::Test {
 protected:
  void TearDown() override {
    use_isa("auto");
    set_threads(threads_);
  }
  int threads_ = thread_count();
};

std::vector<GemmShape> with_transposes(std::vector<GemmShape> shapes) {
  std::vector<GemmShape> all;
  for (GemmShape shape : shapes) {
    for (int bits = 0; bits < 4; ++bits) {
      shape.transpose_a = bits & 1;
      shape.transpose_b = bits & 2;
      all.push_back(shape);
    }
  }
  return all;
}

TEST_F(GemmTest, EqualsTheOracleAtOddShapesOnEveryInstructionSet) {
  // Sizes: 1, primes, around the register tile's 4, 8, 16, 24 and 48, and beyond the blocks of 192,
  // 512 and 768.
  const std::vector<GemmShape> shapes = with_transposes({{1, 1, 1},
                                                         {1, 17, 5},
                                                         {2, 3, 4},
                                                         {3, 49, 193},
                                                         {4, 24, 16},
                                                         {5, 48, 385},
                                                         {7, 31, 37},
                                                         {8, 48, 192},
                                                         {9, 47, 11},
                                                         {13, 65, 128},
                                                         {16, 96, 64},
                                                         {17, 101, 53},
                                                         {1, 769, 70},
                                                         {33, 16, 401},
                                                         {61, 127, 200},
                                                         {523, 50, 9},
                                                         {3100, 20, 7},
                                                         {803, 19, 200},
                                                         {21, 797, 195}});
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    for (const GemmShape& shape : shapes) {
      for (const bool bias : {false, true}) {
        for (const bool add : {false, true})
          expect_oracle({shape, DType::f32, DType::f32, DType::f32, bias, add});
      }
    }
  }
}

TEST_F(GemmTest, EqualsTheOracleInEveryMixOfDTypes) {
  const std::vector<GemmShape> shapes =
      with_transposes({{1, 33, 50}, {11, 53, 197}, {20, 64, 31}, {35, 97, 400}});
  const DType dtypes[] = {DType::f32, DType::bf16};
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    for (const GemmShape& shape : shapes) {
      for (const DType a : dtypes) {
        for (const DType b : dtypes) {
          for (const DType c : dtypes) {
            expect_oracle({shape, a, b, c, true, false});
            expect_oracle({shape, a, b, c, false, true});
            expect_oracle({shape, a, b, c, true, true});
          }
        }
      }
    }
  }
}

TEST_F(GemmTest, HandlesEmptyShapes) {
  for (const GemmShape& shape : with_transposes({{0, 3, 4}, {3, 0, 4}, {3, 20, 0}, {0, 0, 0}})) {
    for (const bool bias : {false, true}) {
      for (const bool add : {false, true}) {
        expect_oracle({shape, DType::f32, DType::f32, DType::f32, bias, add});
        expect_oracle({shape, DType::bf16, DType::bf16, DType::bf16, bias, add});
      }
    }
  }
}

TEST_F(GemmTest, RefusesOtherDTypes) {
  double number = 0;
  try {
    cpu::gemm({&number, DType::f64}, {&number, DType::f64}, {&number, DType::f64}, {}, {1, 1, 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_STREQ(error.what(), "gemm: a is fp64; expected fp32 or bf16");
  }
}

// A function that adds the products of one unit for one element.
using Order = float (*)(const std::vector<std::pair<float, float>>& factors);

float chain(const std::vector<std::pair<float, float>>& factors) {
  float sum = 0;
  for (const auto& [a, b] : factors) sum = std::fma(a, b, sum);
  return sum;
}

// Adds in the order that Intel's manual defines for AMX tiles: blocks of 32 products, even and odd
// ones separately.
float tile_order(const std::vector<std::pair<float, float>>& factors) {
  float sum = 0;
  for (size_t begin = 0; begin < factors.size(); begin += 32) {
    float parts[2] = {0, 0};
    for (size_t i = begin; i < begin + 32; ++i) {
      const auto [a, b] = i < factors.size() ? factors[i] : std::pair(0.0f, 0.0f);
      parts[i % 2] = std::fma(a, b, parts[i % 2]);
    }
    sum += parts[0] + parts[1];
  }
  return sum;
}

// bf16 products are added in pairs: if their number is odd, a product of zeros is added, which
// turns a sum of -0 into 0.
float chain_of_pairs(const std::vector<std::pair<float, float>>& factors) {
  const float sum = chain(factors);
  return factors.size() % 2 == 0 ? sum : std::fma(0.0f, 0.0f, sum);
}

Order order_of(const std::string& isa, DType dtype) {
  if (dtype == DType::f32) return chain;
  return isa.starts_with("amx") ? tile_order : chain_of_pairs;
}

// Returns the bits of the product by its definition: the sums of the units, added by the tree, then
// the bias, then the old value.
std::vector<uint32_t> defined(Order order, const Array& a, const Array& b, const Array* bias,
                              const Array* old, const GemmShape& shape) {
  std::vector<uint32_t> bits;
  const int64_t m = shape.m, n = shape.n, k = shape.k;
  std::vector<float> sums(static_cast<size_t>(SumTree::slots(shape.units.count)));
  const auto merge = [&](int slot) {
    sums[static_cast<size_t>(slot) - 1] += sums[static_cast<size_t>(slot)];
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      SumTree tree;
      sums[0] = 0;
      for (int64_t unit = 0; unit < shape.units.count; ++unit) {
        std::vector<std::pair<float, float>> factors;
        for (int64_t l = shape.units.start(unit, k); l < shape.units.start(unit + 1, k); ++l)
          factors.emplace_back(a[static_cast<size_t>(shape.transpose_a ? l * m + i : i * k + l)],
                               b[static_cast<size_t>(shape.transpose_b ? j * k + l : l * n + j)]);
        if (factors.empty()) continue;
        sums[static_cast<size_t>(tree.next(unit, merge))] = order(factors);
      }
      tree.finish(merge);
      float sum = sums[0];
      if (bias) sum += (*bias)[static_cast<size_t>(j)];
      if (old) sum = (*old)[static_cast<size_t>(i * n + j)] + sum;
      bits.push_back(std::bit_cast<uint32_t>(sum));
    }
  }
  return bits;
}

// If results equal the definition in every bit, they do not depend on the batch, the number of
// threads or the vector width; other tests check each of these separately.
TEST_F(GemmTest, EveryElementIsOneChainOverAscendingK) {
  const std::vector<GemmShape> shapes =
      with_transposes({{1, 100, 450}, {7, 65, 193}, {26, 113, 600}, {600, 33, 20}, {4, 1600, 5}});
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    for (const GemmShape& shape : shapes) {
      const Array a(random_floats(size(shape.m, shape.k), 1), DType::f32),
          b(random_floats(size(shape.k, shape.n), 2), DType::bf16);
      const Array bias(random_floats(static_cast<size_t>(shape.n), 3), DType::f32);
      const Array old(random_floats(size(shape.m, shape.n), 4), DType::f32);
      const auto with_bias = defined(chain, a, b, &bias, nullptr, shape);
      const auto with_old = defined(chain, a, b, nullptr, &old, shape);
      for (const int threads : {1, 2, 3}) {
        set_threads(threads);
        Array set = old, added = old;
        cpu::gemm(set.out(false), a.in(), b.in(), bias.in(), shape);
        EXPECT_TRUE(set.bits() == with_bias) << isa << " " << threads << " " << shape.m;
        cpu::gemm(added.out(true), a.in(), b.in(), {}, shape);
        EXPECT_TRUE(added.bits() == with_old) << isa << " " << threads << " " << shape.m;
      }
    }
  }
}

// Returns bf16 numbers, some of which are so small that their products are denormal and count as
// zero.
std::vector<float> tiny_floats(size_t count, unsigned seed) {
  std::vector<float> values = random_floats(count, seed);
  std::mt19937 generator(seed);
  for (float& value : values)
    value = widen(narrow(std::ldexp(value, -static_cast<int>(generator() % 3) * 64 - 60)));
  return values;
}

TEST_F(GemmTest, Bf16ProductsHaveTheBitsOfTheirOrderOnEveryInstructionSet) {
  const std::vector<GemmShape> shapes = with_transposes(
      {{1, 100, 450}, {7, 65, 193}, {26, 113, 600}, {600, 33, 20}, {40, 35, 2100}, {33, 5, 1}});
  for (const auto& numbers : {random_floats, tiny_floats}) {
    for (const GemmShape& shape : shapes) {
      const Array a(numbers(size(shape.m, shape.k), 1), DType::bf16);
      const Array b(numbers(size(shape.k, shape.n), 2), DType::bf16);
      const Array old(numbers(size(shape.m, shape.n), 4), DType::f32);
      std::vector<uint32_t> expected[2];
      {
        const FloatMode flush(kFlushToZero);
        expected[0] = defined(chain_of_pairs, a, b, nullptr, &old, shape);
        expected[1] = defined(tile_order, a, b, nullptr, &old, shape);
      }
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        for (const int threads : {1, 3}) {
          set_threads(threads);
          Array added = old;
          cpu::gemm(added.out(true), a.in(), b.in(), {}, shape);
          EXPECT_TRUE(added.bits() == expected[isa.starts_with("amx")])
              << isa << " " << threads << " m " << shape.m << " n " << shape.n << " k " << shape.k;
        }
      }
    }
  }
}

// Sums rows in units of equal and of different sizes, some of them empty.
TEST_F(GemmTest, UnitsAreSummedSeparatelyAndAddedByTheTree) {
  const std::vector<int64_t> starts = {0, 0, 70, 71, 170, 170, 300};
  const GemmShape equal = {37, 85, 12 * 64, true, false, {12}};
  const GemmShape odd = {33, 50, 5 * 31, true, false, {5}};
  const GemmShape long_ones = {9, 50, 3 * 2100, true, false, {3}};
  const GemmShape many = {70, 40, 40 * 100, true, false, {40}};
  const GemmShape unequal = {20, 100, 300, true, false, {6, starts.data()}};
  for (const GemmShape& shape : {equal, odd, long_ones, many, unequal}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Array a(random_floats(size(shape.m, shape.k), 1), dtype);
      const Array b(random_floats(size(shape.k, shape.n), 2), dtype);
      const Array old(random_floats(size(shape.m, shape.n), 4), DType::f32);
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        const auto expected = defined(order_of(isa, dtype), a, b, nullptr, nullptr, shape);
        const auto with_old = defined(order_of(isa, dtype), a, b, nullptr, &old, shape);
        for (const int threads : {1, 2}) {
          set_threads(threads);
          Array set = old, added = old;
          cpu::gemm(set.out(false), a.in(), b.in(), {}, shape);
          EXPECT_TRUE(set.bits() == expected) << isa << " " << threads << " k " << shape.k;
          cpu::gemm(added.out(true), a.in(), b.in(), {}, shape);
          EXPECT_TRUE(added.bits() == with_old) << isa << " " << threads << " k " << shape.k;
        }
      }
    }
  }
}

TEST_F(GemmTest, ARowHasTheSameBitsAloneAndInABatch) {
  const int64_t n = 131, k = 421;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Array a(random_floats(size(70, k), 1), dtype), b(random_floats(size(n, k), 2), dtype);
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      std::vector<std::vector<uint32_t>> alone;
      for (int64_t row = 0; row < 70; ++row) {
        Array c(std::vector<float>(size(1, n)), DType::f32);
        const auto bytes = row * k * static_cast<int64_t>(size_of(dtype));
        cpu::gemm(c.out(false), {static_cast<const char*>(a.in().data) + bytes, dtype}, b.in(), {},
                  {1, n, k, false, true});
        alone.push_back(c.bits());
      }
      for (int64_t m = 1; m <= 70; ++m) {
        Array c(std::vector<float>(size(m, n)), DType::f32);
        cpu::gemm(c.out(false), a.in(), b.in(), {}, {m, n, k, false, true});
        const std::vector<uint32_t> bits = c.bits();
        for (int64_t row = 0; row < m; ++row) {
          EXPECT_TRUE(std::equal(alone[size(row, 1)].begin(), alone[size(row, 1)].end(),
                                 bits.begin() + row * n))
              << isa << " " << m << " " << row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea
