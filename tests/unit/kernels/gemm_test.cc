#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm_internal.h"
#include "unit/kernels/units.h"

namespace fovea {
namespace {

// Floats that a bf16 holds exactly, so that one oracle serves both dtypes.
std::vector<float> random_floats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = widen(narrow(normal(generator)));
  return values;
}

// An array of either dtype.
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

using Gemm = void (*)(Out, In, In, In, const GemmShape&);

void expect_oracle(const Case& test, Gemm gemm = cpu::gemm) {
  const auto& [m, n, k, transpose_a, transpose_b, units] = test.shape;
  SCOPED_TRACE(fmt::format("m {} n {} k {} transposes {} {} dtypes {} {} {} bias {} add {} isa {}",
                           m, n, k, transpose_a, transpose_b, name_of(test.a), name_of(test.b),
                           name_of(test.c), test.bias, test.add, active_isa()));
  const Array a(random_floats(size(m, k), 1), test.a), b(random_floats(size(k, n), 2), test.b);
  const Array bias(random_floats(static_cast<size_t>(n), 3), test.b);
  const std::vector<float> old = random_floats(size(m, n), 4);
  Array c(test.add ? old : std::vector<float>(size(m, n), NAN), test.c);
  gemm(c.out(test.add), a.in(), b.in(), test.bias ? bias.in() : In{}, test.shape);
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
          test.c == DType::bf16 ? std::abs(sum) / 256 : 0;  // half a unit of 8 bits
      const double error = std::abs(c[size(i, n) + size(j, 1)] - sum);
      // A chain of k roundings errs by sqrt(k) units in the last place if they are random; 8 for
      // the worst of many.
      if (!(error <= rounding + magnitude * 6e-8 * 8)) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0);
}

class GemmTest : public testing::Test {
 protected:
  void TearDown() override {
    use_isa("auto");
    set_thread_count(threads_);
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
  // One, primes, each side of the register tile's 4, 8, 16, 24, 48, and beyond the blocks of 192,
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
  for (const std::string& isa : available_isas()) {
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
  for (const std::string& isa : available_isas()) {
    use_isa(isa);
    for (const GemmShape& shape : shapes) {
      for (const DType a : dtypes) {
        for (const DType b : dtypes) {
          for (const DType c : dtypes) {
            expect_oracle({shape, a, b, c, true, false});
            expect_oracle({shape, a, b, c, false, true});
            expect_oracle({shape, a, b, c, true, true}, cpu::gemm_f32);
          }
        }
      }
    }
  }
}

// Emulated where the CPU has no bf16 products, so its rounding is tested everywhere.
TEST_F(GemmTest, OneDnnEqualsTheOracleInBf16) {
  for (const GemmShape& shape : with_transposes({{1, 33, 50}, {11, 53, 197}, {64, 128, 96}})) {
    for (const DType c : {DType::f32, DType::bf16}) {
      for (const bool bias : {false, true}) {
        for (const bool add : {false, true})
          expect_oracle({shape, DType::bf16, DType::bf16, c, bias, add}, cpu::gemm_onednn);
      }
    }
  }
}

TEST_F(GemmTest, TakesEmptyShapes) {
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
    EXPECT_STREQ(error.what(), "gemm: a is fp64; the CPU multiplies fp32 and bf16");
  }
}

// The product as the definition has it: one chain of fused multiply-adds for each element, of each
// unit.
std::vector<uint32_t> chained(const Array& a, const Array& b, const Array* bias, const Array* old,
                              const GemmShape& shape) {
  std::vector<uint32_t> bits;
  const auto m = static_cast<size_t>(shape.m), n = static_cast<size_t>(shape.n),
             k = static_cast<size_t>(shape.k);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      std::vector<std::optional<float>> sums;
      for (int64_t unit = 0; unit < shape.units.count; ++unit) {
        float sum = 0;
        for (int64_t row = shape.units.start(unit, shape.k);
             row < shape.units.start(unit + 1, shape.k); ++row) {
          const auto l = static_cast<size_t>(row);
          sum = std::fma(a[shape.transpose_a ? l * m + i : i * k + l],
                         b[shape.transpose_b ? j * k + l : l * n + j], sum);
        }
        sums.emplace_back(sum);
      }
      float sum = test::tree_sum(sums);
      if (bias) sum += (*bias)[j];
      if (old) sum = (*old)[i * n + j] + sum;
      bits.push_back(std::bit_cast<uint32_t>(sum));
    }
  }
  return bits;
}

// Equality with the chain implies the rest - rows alone or in company, threads, vector widths -
// each also shown by itself.
TEST_F(GemmTest, EveryElementIsOneChainOverAscendingK) {
  const std::vector<GemmShape> shapes =
      with_transposes({{1, 100, 450}, {7, 65, 193}, {26, 113, 600}, {600, 33, 20}, {4, 1600, 5}});
  for (const std::string& isa : available_isas()) {
    use_isa(isa);
    for (const GemmShape& shape : shapes) {
      const Array a(random_floats(size(shape.m, shape.k), 1), DType::f32),
          b(random_floats(size(shape.k, shape.n), 2), DType::bf16);
      const Array bias(random_floats(static_cast<size_t>(shape.n), 3), DType::f32);
      const Array old(random_floats(size(shape.m, shape.n), 4), DType::f32);
      for (const int threads : {1, 2, 3}) {
        set_thread_count(threads);
        Array set = old, added = old;
        cpu::gemm(set.out(false), a.in(), b.in(), bias.in(), shape);
        EXPECT_EQ(set.bits(), chained(a, b, &bias, nullptr, shape))
            << isa << " " << threads << " " << shape.m;
        cpu::gemm(added.out(true), a.in(), b.in(), {}, shape);
        EXPECT_EQ(added.bits(), chained(a, b, nullptr, &old, shape))
            << isa << " " << threads << " " << shape.m;
      }
    }
  }
}

TEST_F(GemmTest, UnitsAreChainsThatATreeAdds) {
  for (const std::string& isa : available_isas()) {
    use_isa(isa);
    for (GemmShape shape : std::vector<GemmShape>{
             {7, 65, 240, true, false}, {33, 16, 30, true, false}, {1, 100, 3, true, false}}) {
      const Array a(random_floats(size(shape.m, shape.k), 1), DType::f32),
          b(random_floats(size(shape.k, shape.n), 2), DType::bf16);
      const Array old(random_floats(size(shape.m, shape.n), 4), DType::f32);
      for (const test::Divided& divided : test::divisions(shape.k)) {
        shape.units = divided.units();
        for (const int threads : {1, 2, 3}) {
          set_thread_count(threads);
          Array set = old, added = old;
          cpu::gemm(set.out(false), a.in(), b.in(), {}, shape);
          EXPECT_EQ(set.bits(), chained(a, b, nullptr, nullptr, shape)) << shape.units.count;
          cpu::gemm(added.out(true), a.in(), b.in(), {}, shape);
          EXPECT_EQ(added.bits(), chained(a, b, nullptr, &old, shape)) << shape.units.count;
        }
      }
    }
  }
}

// Between bf16 operands, where the chains may be oneDNN's.
TEST_F(GemmTest, UnitsAreTheSumsOfTheirProducts) {
  const GemmShape whole = {40, 33, 240, true, false};
  const Array a(random_floats(size(whole.m, whole.k), 1), DType::bf16),
      b(random_floats(size(whole.k, whole.n), 2), DType::bf16);
  for (const std::string& isa : available_isas()) {
    use_isa(isa);
    for (const test::Divided& divided : test::divisions(whole.k)) {
      GemmShape shape = whole;
      shape.units = divided.units();
      Array expected(std::vector<float>(size(whole.m, whole.n)), DType::f32), all = expected;
      std::vector<std::vector<std::optional<float>>> sums(size(whole.m, whole.n));
      for (int64_t unit = 0; unit < shape.units.count; ++unit) {
        const int64_t begin = shape.units.start(unit, whole.k);
        const int64_t rows = shape.units.start(unit + 1, whole.k) - begin;
        Array part = expected;
        cpu::gemm(part.out(false),
                  {static_cast<const bf16*>(a.in().data) + begin * whole.m, DType::bf16},
                  {static_cast<const bf16*>(b.in().data) + begin * whole.n, DType::bf16}, {},
                  {whole.m, whole.n, rows, true, false});
        for (size_t i = 0; i < sums.size(); ++i) sums[i].emplace_back(part[i]);
      }
      cpu::gemm(all.out(false), a.in(), b.in(), {}, shape);
      for (size_t i = 0; i < sums.size(); ++i)
        ASSERT_EQ(all[i], test::tree_sum(sums[i])) << isa << " " << shape.units.count;
    }
  }
}

TEST_F(GemmTest, ARowIsTheSameAloneAndInCompany) {
  const int64_t n = 131, k = 421;
  const Array a(random_floats(size(70, k), 1), DType::f32),
      b(random_floats(size(n, k), 2), DType::f32);
  std::vector<std::vector<uint32_t>> alone;
  for (int64_t row = 0; row < 70; ++row) {
    Array c(std::vector<float>(size(1, n)), DType::f32);
    cpu::gemm(c.out(false), {static_cast<const float*>(a.in().data) + row * k}, b.in(), {},
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
          << m << " " << row;
    }
  }
}

}  // namespace
}  // namespace fovea
