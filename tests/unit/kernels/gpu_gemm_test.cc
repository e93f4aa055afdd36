// Products on the GPU have the bits of the CPU's class "common" or, on tensor cores, the same bits
// for a row in any company.

#include "kernels/sum_tree.h"
#include "unit/kernels/compare.h"
#include "unit/kernels/units.h"

namespace fovea {
namespace {

using test::Array;

struct Case {
  int64_t m, n, k;
};
// Around the 64 rows and columns of a block, its 4 x 4 of a thread, and its 16 of k.
constexpr Case kCases[] = {{1, 1, 1},    {3, 5, 0},     {7, 66, 17},
                           {64, 64, 32}, {65, 130, 33}, {129, 3, 70}};

class GpuGemm : public testing::Test {
 protected:
  GpuGemm() { use_isa("avx2"); }
  ~GpuGemm() override { use_isa("auto"); }

  static void expect_equal(const GemmShape& shape, const Array& a, const Array& b, const In& bias,
                           DType dtype, bool add) {
    const Array c = Array::normal(shape.m * shape.n, dtype, 9);
    Array expected = c;
    cpu_kernels().gemm(expected.out(add), a.in(), b.in(), bias, shape);
    for (const uint64_t order : {1, 2}) {
      cuda::set_model_order(order);
      Array actual = c;
      test::gpu_kernels().gemm(actual.out(add), a.in(), b.in(), bias, shape);
      test::wait_for_gpu();
      EXPECT_TRUE(actual == expected)
          << shape.m << " " << shape.n << " " << shape.k << " " << shape.transpose_a
          << shape.transpose_b << " " << name_of(a.dtype()) << " " << name_of(dtype) << " " << add;
    }
  }
};

TEST_F(GpuGemm, HasTheBitsOfOneChain) {
  for (const auto& [m, n, k] : kCases)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (int bits = 0; bits < 8; ++bits) {
        const Array a = Array::normal(m * k, DType::f32, 1), b = Array::normal(k * n, dtype, 2),
                    bias = Array::normal(n, dtype, 3);
        const GemmShape shape = {m, n, k, (bits & 1) != 0, (bits & 2) != 0};
        expect_equal(shape, a, b, {}, DType::f32, bits & 4);
        expect_equal(shape, a, b, bias.in(), dtype, bits & 4);
      }
}

TEST_F(GpuGemm, ContinuesOverASecondPair) {
  const Array a = Array::normal(70 * 20, DType::f32, 1), b = Array::normal(20 * 67, DType::f32, 2),
              more_a = Array::normal(70 * 3, DType::f32, 3),
              more_b = Array::normal(3 * 67, DType::f32, 4);
  for (const bool transpose_b : {false, true}) {
    GemmShape shape = {70, 67, 20, false, transpose_b};
    shape.second = {more_a.in(), more_b.in(), 3};
    expect_equal(shape, a, b, {}, DType::f32, false);
  }
}

TEST_F(GpuGemm, SumsUnitsByTheirTree) {
  constexpr int64_t kRows = 40;
  for (const test::Divided& divided : test::divisions(kRows))
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Array a = Array::normal(kRows * 66, DType::f32, 1),
                  b = Array::normal(kRows * 7, dtype, 2);
      GemmShape shape = {66, 7, kRows, true, false};
      shape.units = divided.units();
      expect_equal(shape, a, b, {}, DType::f32, true);
    }
}

// ---- On tensor cores

Array product(const Kernels& kernels, Array c, const Array& a, const Array& b, In bias,
              const GemmShape& shape, bool add = false) {
  kernels.gemm(c.out(add), a.in(), b.in(), bias, shape);
  test::wait_for_gpu();
  return c;
}

Array slice(const Array& x, int64_t begin, int64_t end) {
  std::vector<double> numbers;
  for (int64_t i = begin; i < end; ++i) numbers.push_back(x[i]);
  return {numbers, x.dtype()};
}

// Around the tiles of 128 x 128 and of 16 x 64, and the stages of 32 along k.
constexpr Case kHalfCases[] = {{1, 1, 1},    {16, 64, 32},   {17, 65, 40},   {3, 5, 0},
                               {40, 30, 96}, {129, 72, 128}, {130, 136, 33}, {16, 200, 104}};

TEST(GpuMma, IsCloseToTheReference) {
  for (const auto& [m, n, k] : kHalfCases)
    for (int bits = 0; bits < 8; ++bits) {
      const Array a = Array::normal(m * k, DType::bf16, 1),
                  b = Array::normal(k * n, DType::bf16, 2), bias = Array::normal(n, DType::bf16, 3),
                  c = Array::normal(m * n, DType::f32, 4);
      const GemmShape shape = {m, n, k, (bits & 1) != 0, (bits & 2) != 0};
      const In given = (bits & 4) != 0 ? bias.in() : In{};
      const Array expected = product(reference_kernels(), c, a, b, given, shape, (bits & 4) != 0);
      for (const uint64_t order : {1, 2}) {
        cuda::set_model_order(order);
        EXPECT_TRUE(
            close(product(test::gpu_kernels(), c, a, b, given, shape, (bits & 4) != 0), expected))
            << m << " " << n << " " << k << " " << bits;
      }
    }
}

TEST(GpuMma, ARowHasTheSameBitsInAnyCompany) {
  constexpr int64_t kRows = 150, kColumns = 72, kK = 88;
  const Array a = Array::normal(kRows * kK, DType::bf16, 1),
              b = Array::normal(kK * kColumns, DType::bf16, 2);
  const Array c(kRows * kColumns, DType::f32);
  const Array all = product(test::gpu_kernels(), c, a, b, {}, {kRows, kColumns, kK});
  for (const int64_t rows : {1, 16, 17, 60}) {
    const int64_t first = kRows - rows - 3;
    const Array part =
        product(test::gpu_kernels(), Array(rows * kColumns, DType::f32),
                slice(a, first * kK, (first + rows) * kK), b, {}, {rows, kColumns, kK});
    EXPECT_TRUE(part == slice(all, first * kColumns, (first + rows) * kColumns)) << rows;
  }
}

TEST(GpuMma, SumsUnitsByTheirTree) {
  constexpr int64_t kM = 24, kN = 40, kK = 70;
  const Array a = Array::normal(kK * kM, DType::bf16, 1),
              b = Array::normal(kK * kN, DType::bf16, 2);
  const Array c(kM * kN, DType::f32);
  for (const test::Divided& divided : test::divisions(kK)) {
    GemmShape shape = {kM, kN, kK, true, false};
    shape.units = divided.units();
    std::vector<Array> sums;
    for (int64_t unit = 0; unit < shape.units.count; ++unit) {
      const int64_t begin = shape.units.start(unit, kK), end = shape.units.start(unit + 1, kK);
      sums.push_back(product(test::gpu_kernels(), c, slice(a, begin * kM, end * kM),
                             slice(b, begin * kN, end * kN), {}, {kM, kN, end - begin, true}));
    }
    const Array all = product(test::gpu_kernels(), c, a, b, {}, shape);
    for (int64_t i = 0; i < c.size(); ++i) {
      float held[SumTree::kMost];
      const auto merge = [&](int slot) { held[slot - 1] += held[slot]; };
      SumTree tree;
      for (size_t unit = 0; unit < sums.size(); ++unit)
        held[tree.next(static_cast<int64_t>(unit), merge)] = static_cast<float>(sums[unit][i]);
      tree.finish(merge);
      ASSERT_EQ(all[i], held[0]) << i << " of " << shape.units.count << " units";
    }
  }
}

TEST(GpuMma, ContinuesOverASecondPair) {
  const Array a = Array::normal(70 * 24, DType::bf16, 1),
              b = Array::normal(24 * 64, DType::bf16, 2),
              more_a = Array::normal(70 * 8, DType::bf16, 3),
              more_b = Array::normal(8 * 64, DType::bf16, 4), c(70 * 64, DType::f32);
  for (const bool transpose_b : {false, true}) {
    GemmShape shape = {70, 64, 24, false, transpose_b};
    shape.second = {more_a.in(), more_b.in(), 8};
    EXPECT_TRUE(close(product(test::gpu_kernels(), c, a, b, {}, shape),
                      product(reference_kernels(), c, a, b, {}, shape)));
  }
}

}  // namespace
}  // namespace fovea
