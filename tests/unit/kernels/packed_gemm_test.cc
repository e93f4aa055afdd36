// packed_gemm has the bits of gemm with the unpacked matrix.

#include <gtest/gtest.h>

#include <cmath>

#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/isa.h"
#include "kernels/reference/reference.h"
#include "support/expect_error.h"
#include "unit/kernels/compare.h"
#include "unit/kernels/packed_matrices.h"

namespace fovea {
namespace {

using packed_test::Packed;
using test::Array;

class PackedGemm : public testing::Test {
 protected:
  void TearDown() override {
    use_isa("auto");
    set_threads(threads_);
  }
  int threads_ = thread_count();
};

// Every format with every size of groups that it has.
std::vector<std::pair<WeightFormat, int64_t>> kinds() {
  std::vector<std::pair<WeightFormat, int64_t>> all = {
      {WeightFormat::int8, 64}, {WeightFormat::int8, 0}, {WeightFormat::int4, 64}};
  for (const WeightFormat format : packed_test::kAllFormats) all.emplace_back(format, 32);
  return all;
}

// The matrix in the dtype of a product's operands.
Array unpacked(const Packed& packed, DType dtype) {
  const std::vector<float> floats = packed.rows();
  return {std::vector<double>(floats.begin(), floats.end()), dtype};
}

GemmShape shape_of(const Packed& packed, int64_t rows, bool forward) {
  return forward ? GemmShape{rows, packed.w.outputs, packed.w.width, false, true}
                 : GemmShape{rows, packed.w.width, packed.w.outputs, false, false};
}

// Compares the two products on the current instruction set.
void expect_same_bits(const Packed& packed, const Array& matrix, int64_t rows, bool forward,
                      DType result, bool add) {
  const GemmShape shape = shape_of(packed, rows, forward);
  const Array a = Array::normal(rows * shape.k, matrix.dtype(), 1),
              old = Array::normal(rows * shape.n, result, 2),
              bias = Array::normal(shape.n, DType::f32, 3);
  Array expected = old, found = old;
  const In with_bias = forward ? bias.in() : In{};
  cpu::gemm(expected.out(add), a.in(), matrix.in(), with_bias, shape);
  cpu::packed_gemm(found.out(add), a.in(), packed.w, with_bias, shape);
  EXPECT_TRUE(found == expected) << instruction_set() << " " << name_of(packed.w.format)
                                 << " group " << packed.w.group << ", " << rows << " rows, matrix "
                                 << packed.w.outputs << " x " << packed.w.width << " "
                                 << name_of(matrix.dtype()) << (forward ? " forward" : " backward")
                                 << (add ? " add" : "");
}

TEST_F(PackedGemm, HasTheBitsOfGemmInEveryFormatOnEveryInstructionSet) {
  constexpr std::pair<int64_t, int64_t> kSizes[] = {
      {1, 1}, {17, 31}, {100, 65}, {37, 96}, {50, 200}};
  for (const auto& [format, group] : kinds()) {
    for (const auto& [outputs, width] : kSizes) {
      const Packed packed(format, outputs, packed_test::width_for(format, width), group);
      for (const DType compute : {DType::f32, DType::bf16}) {
        const Array matrix = unpacked(packed, compute);
        for (const std::string& isa : testable_isas()) {
          use_isa(isa);
          for (const int64_t rows : {1, 3, 64, 200}) {
            set_threads(static_cast<int>(rows % 3) + 1);
            for (const bool forward : {false, true})
              expect_same_bits(packed, matrix, rows, forward, DType::f32, rows == 3);
          }
        }
      }
    }
  }
}

// Several blocks of k, of columns and of rows in each thread.
TEST_F(PackedGemm, HasTheBitsOfGemmInLargeMatrices) {
  for (const WeightFormat format : {WeightFormat::int4, WeightFormat::q6_k, WeightFormat::bf16}) {
    const Packed packed(format, 1003, 1280);
    for (const DType compute : {DType::f32, DType::bf16}) {
      const Array matrix = unpacked(packed, compute);
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        for (const int threads : {1, 3}) {
          set_threads(threads);
          for (const bool forward : {false, true})
            expect_same_bits(packed, matrix, 33, forward, compute, threads == 3);
        }
      }
    }
  }
}

// The matrix of [outputs, width + rank], or [outputs + rank, width] for the backward product, of
// which `packed` is the first part and `second` the rest.
Array joined(const Array& matrix, const Array& second, const Packed& packed, int64_t rank,
             bool forward) {
  std::vector<double> all;
  const int64_t width = packed.w.width, outputs = packed.w.outputs;
  for (int64_t n = 0; n < outputs; ++n) {
    for (int64_t k = 0; k < width; ++k) all.push_back(matrix[n * width + k]);
    for (int64_t r = 0; forward && r < rank; ++r) all.push_back(second[n * rank + r]);
  }
  for (int64_t i = 0; !forward && i < rank * width; ++i) all.push_back(second[i]);
  return {all, matrix.dtype()};
}

Array side_by_side(const Array& a, int64_t k, const Array& second, int64_t rank, int64_t rows) {
  std::vector<double> all;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < k; ++i) all.push_back(a[r * k + i]);
    for (int64_t i = 0; i < rank; ++i) all.push_back(second[r * rank + i]);
  }
  return {all, a.dtype()};
}

// The product with a second pair of operands is that of matrices which contain both pairs, if the
// first one ends at a block of AMX.
TEST_F(PackedGemm, ContinuesItsSumsOverASecondPair) {
  const Packed packed(WeightFormat::bf16, 288, 672);
  for (const DType compute : {DType::f32, DType::bf16}) {
    const Array matrix = unpacked(packed, compute);
    for (const bool forward : {false, true}) {
      for (const int64_t rank : {1, 16, 50, 300}) {
        constexpr int64_t kRows = 35;
        GemmShape shape = shape_of(packed, kRows, forward);
        const Array a = Array::normal(kRows * shape.k, compute, 1),
                    second_a = Array::normal(kRows * rank, compute, 4),
                    second_b = Array::normal(shape.n * rank, compute, 5),
                    bias = Array::normal(shape.n, DType::f32, 3);
        const Array both_a = side_by_side(a, shape.k, second_a, rank, kRows),
                    both_b = joined(matrix, second_b, packed, rank, forward);
        const GemmShape whole = {kRows, shape.n, shape.k + rank, false, forward};
        shape.second = {second_a.in(), second_b.in(), rank};
        for (const std::string& isa : testable_isas()) {
          use_isa(isa);
          for (const DType result : {DType::f32, DType::bf16}) {
            for (const bool add : {false, true}) {
              set_threads(add ? 3 : 1);
              const Array old = Array::normal(kRows * shape.n, result, 2);
              Array expected = old, found = old, dense = old;
              cpu::gemm(expected.out(add), both_a.in(), both_b.in(), bias.in(), whole);
              cpu::packed_gemm(found.out(add), a.in(), packed.w, bias.in(), shape);
              cpu::gemm(dense.out(add), a.in(), matrix.in(), bias.in(), shape);
              EXPECT_TRUE(found == expected && dense == expected)
                  << isa << " " << name_of(compute) << " to " << name_of(result) << " rank " << rank
                  << (forward ? " forward" : " backward") << (add ? " add" : "");
            }
          }
        }
      }
    }
  }
}

TEST_F(PackedGemm, RefusesASecondPairOfAnotherDtype) {
  const Packed packed(WeightFormat::bf16, 32, 32);
  const Array a = Array::normal(64, DType::f32, 1), second = Array::normal(64, DType::bf16, 2);
  Array c(64, DType::f32);
  GemmShape shape = shape_of(packed, 2, true);
  shape.second = {second.in(), second.in(), 2};
  expect_error(ErrorKind::InvalidArgument, {"second operands bf16"},
               [&] { cpu::packed_gemm(c.out(), a.in(), packed.w, {}, shape); });
}

TEST_F(PackedGemm, IsCloseToTheReference) {
  for (const auto& [format, group] : kinds()) {
    const Packed packed(format, 37, packed_test::width_for(format, 100), group);
    for (const DType compute : {DType::f32, DType::bf16}) {
      for (const bool forward : {false, true}) {
        const GemmShape shape = shape_of(packed, 5, forward);
        const Array a = Array::normal(5 * shape.k, compute, 1),
                    bias = Array::normal(shape.n, DType::f32, 3);
        Array expected(5 * shape.n, DType::f32), found = expected;
        reference::packed_gemm(expected.out(), a.in(), packed.w, bias.in(), shape);
        cpu::packed_gemm(found.out(), a.in(), packed.w, bias.in(), shape);
        EXPECT_TRUE(test::close(found, expected)) << name_of(format);
        Array dense(5 * shape.n, DType::f32);
        reference::gemm(dense.out(), a.in(), unpacked(packed, compute).in(), bias.in(), shape);
        EXPECT_TRUE(dense == expected) << name_of(format);
      }
    }
  }
}

// bf16 products count denormal numbers as zero, but a denormal weight may round to a normal one.
TEST_F(PackedGemm, RoundsDenormalWeightsBeforeTheyCountAsZero) {
  Packed packed(WeightFormat::f32, 16, 32);
  std::fill(packed.floats.begin(), packed.floats.end(), std::bit_cast<float>(0x007fffffu));
  pack(packed.w, {packed.floats.data()}, const_cast<void*>(packed.w.panels), nullptr);
  const Array matrix = unpacked(packed, DType::bf16),
              a({std::vector<double>(32, 0x1p100)}, DType::bf16);
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    Array y(16, DType::f32);
    cpu::packed_gemm(y.out(), a.in(), packed.w, {}, {1, 16, 32, false, true});
    EXPECT_EQ(y[3], 0x1p-126 * 0x1p105) << isa;
  }
}

TEST_F(PackedGemm, HandlesEmptyShapes) {
  for (const WeightFormat format : packed_test::kAllFormats) {
    const int64_t width = packed_test::width_for(format, 4);
    const Packed narrow_matrix(format, 20, 0), none(format, 0, width);
    const Array bias(std::vector<double>(20, 1.5), DType::f32);
    Array y(40, DType::f32), dx = Array::normal(2 * width, DType::f32, 1);
    cpu::packed_gemm(y.out(), {}, narrow_matrix.w, bias.in(), {2, 20, 0, false, true});
    EXPECT_TRUE(y == Array(std::vector<double>(40, 1.5), DType::f32));
    cpu::packed_gemm(dx.out(), {}, none.w, {}, {2, width, 0, false, false});
    EXPECT_TRUE(dx == Array(std::vector<double>(static_cast<size_t>(2 * width)), DType::f32));
  }
}

TEST_F(PackedGemm, RefusesOtherShapes) {
  const Packed packed(WeightFormat::int8, 20, 32);
  const Array a = Array::normal(32, DType::f32, 1);
  Array y(32, DType::f32);
  for (const GemmShape& shape :
       {GemmShape{1, 32, 20, false, true}, GemmShape{1, 20, 32, false, false},
        GemmShape{1, 20, 32, true, true}, GemmShape{1, 32, 20, false, false, {2}}}) {
    expect_error(ErrorKind::InvalidArgument, {"packed_gemm", "[20, 32]"},
                 [&] { cpu::packed_gemm(y.out(), a.in(), packed.w, {}, shape); });
  }
}

TEST_F(PackedGemm, OutputsOfAMatrixAreThoseOfItsPanels) {
  for (const auto& [format, group] : kinds()) {
    const Packed packed(format, 83, packed_test::width_for(format, 100), group);
    const std::vector<float> rows = packed.rows();
    const PackedMatrix part = outputs_of(packed.w, 32, 71);
    EXPECT_EQ(part.outputs, 39);
    std::vector<float> row(static_cast<size_t>(packed.w.width));
    unpack_row(part, 38, row.data());
    EXPECT_TRUE(std::equal(row.begin(), row.end(), rows.begin() + 70 * packed.w.width));
  }
}

// The GPU unpacks every format to the same numbers, and multiplies them in bf16.
TEST_F(PackedGemm, HasTheSameNumbersOnTheGpu) {
  for (const auto& [format, group] : kinds()) {
    const Packed packed(format, 37, packed_test::width_for(format, 96), group);
    SCOPED_TRACE(testing::Message() << name_of(format) << " group " << packed.w.group);
    const std::vector<float> rows = packed.rows();
    const int64_t size = std::ssize(rows);
    Array all(size, DType::f32);
    test::gpu_kernels().unpack_rows(all.out(), packed.w, nullptr, packed.w.outputs);
    test::wait_for_gpu();
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[i], double{rows[static_cast<size_t>(i)]}) << i;

    constexpr int64_t kRows = 3;
    const Array x = Array::normal(kRows * packed.w.width, DType::f32, 1),
                bias = Array::normal(packed.w.outputs, DType::f32, 2),
                old = Array::normal(kRows * packed.w.outputs, DType::f32, 3);
    for (const bool more : {false, true}) {
      Array expected = old, found = old;
      const auto product = [&](Array& y) {
        PackedProduct all_of_it = {y.out(!more), bias.in(), packed.w};
        if (more) all_of_it.activation = Activation::silu, all_of_it.residual = old.in();
        return all_of_it;
      };
      const PackedProduct of_cpu = product(expected), of_gpu = product(found);
      reference_kernels().packed_linear({&of_cpu, 1}, x.in(), kRows);
      test::gpu_kernels().packed_linear({&of_gpu, 1}, x.in(), kRows);
      test::wait_for_gpu();
      double most = 0, error = 0;
      for (int64_t i = 0; i < found.size(); ++i) {
        most = std::max(most, std::abs(expected[i]));
        error = std::max(error, std::abs(found[i] - expected[i]));
      }
      EXPECT_LE(error, 0.02 * most);
    }
  }
}

}  // namespace
}  // namespace fovea
