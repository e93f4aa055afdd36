#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/job.h"
#include "kernels/isa.h"
#include "kernels/layout/blocks.h"
#include "kernels/layout/packed.h"
#include "kernels/reference/reference.h"
#include "unit/kernels/packed_matrices.h"

namespace fovea {
namespace {

using namespace packed_test;

using Multiply = decltype(Kernels::packed_linear);

std::vector<float> product(Multiply multiply, const Packed& packed, const std::vector<float>& x,
                           int64_t rows, const std::vector<float>& bias = {}) {
  std::vector<float> y(static_cast<size_t>(rows * packed.w.outputs), NAN);
  const PackedProduct one{
      {y.data(), DType::f32}, {bias.empty() ? nullptr : bias.data(), DType::f32}, packed.w};
  multiply({&one, 1}, {x.data(), DType::f32}, rows);
  return y;
}

class PackedTest : public testing::Test {
 protected:
  void TearDown() override {
    use_isa("auto");
    set_threads(threads_);
  }
  int threads_ = thread_count();
};

struct Shape {
  int64_t rows, outputs, width;
};
// Sizes around a panel's 16 outputs, groups of 32 and 64, blocks of 192 and 512 inputs, and the
// rows and panels of every tile.
constexpr Shape kShapes[] = {{1, 1, 1},     {1, 16, 32},  {1, 100, 65}, {2, 17, 31},
                             {3, 64, 64},   {4, 65, 193}, {5, 47, 130}, {6, 96, 192},
                             {7, 33, 520},  {8, 48, 385}, {9, 79, 100}, {13, 31, 37},
                             {17, 160, 63}, {64, 50, 96}, {70, 5, 1030}};

TEST_F(PackedTest, EqualsTheReferenceAtOddShapesOnEveryInstructionSet) {
  for (const WeightFormat format : kAllFormats) {
    for (const int64_t group : {32, 64, 0}) {
      if (group == 0 && format != WeightFormat::int8) continue;
      if (group == 64 && is_block_type(format)) continue;
      for (const auto& [rows, outputs, odd_width] : kShapes) {
        const int64_t width = width_for(format, odd_width);
        const Packed packed(format, outputs, width, group);
        auto x = random_floats(rows * width, 1);
        const auto bias = random_floats(outputs, 3);
        if (format == WeightFormat::bf16)  // x is rounded to bf16
          for (float& value : x) value = widen(narrow(value));
        const auto expected = product(reference::packed_linear, packed, x, rows, bias);
        for (const std::string& isa : testable_isas()) {
          use_isa(isa);
          const auto got = product(cpu::packed_linear, packed, x, rows, bias);
          int wrong = 0;
          for (size_t i = 0; i < got.size(); ++i)
            if (!(std::abs(got[i] - expected[i]) <= 2e-5f)) ++wrong;
          EXPECT_EQ(wrong, 0) << isa << " format " << static_cast<int>(format) << " group " << group
                              << " shape " << rows << " " << outputs << " " << width;
        }
      }
    }
  }
}

TEST_F(PackedTest, ReadsAndWritesBf16AndAdds) {
  for (const WeightFormat format : kAllFormats) {
    const int64_t width = width_for(format, 70);
    const Packed packed(format, 35, width);
    std::vector<bf16> x, y(3 * 35, narrow(2)), bias(35, narrow(0.5f));
    for (const float value : random_floats(3 * width, 1)) x.push_back(narrow(value));
    std::vector<float> wide, expected(3 * 35, 2), wide_bias(35, 0.5f);
    for (const bf16 value : x) wide.push_back(widen(value));
    const PackedProduct floats{
        {expected.data(), DType::f32, true}, {wide_bias.data(), DType::f32}, packed.w};
    const PackedProduct halves{{y.data(), DType::bf16, true}, {bias.data(), DType::bf16}, packed.w};
    cpu::packed_linear({&floats, 1}, {wide.data(), DType::f32}, 3);
    cpu::packed_linear({&halves, 1}, {x.data(), DType::bf16}, 3);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i].bits, narrow(expected[i]).bits);
  }
}

// The activation and the residual of a product have the bits of separate kernels, for complete and
// incomplete vectors of outputs.
TEST_F(PackedTest, AppliesAnActivationAndAddsAResidual) {
  constexpr int64_t kRows = 11, kOutputs = 69, kSize = kRows * kOutputs;
  for (const WeightFormat format : kAllFormats) {
    const int64_t width = width_for(format, 70);
    const Packed packed(format, kOutputs, width);
    const auto x = random_floats(kRows * width, 1), bias = random_floats(kOutputs, 3);
    const auto residual = random_floats(kSize, 4);
    const auto multiply = [&](Multiply kernel, std::optional<Activation> f, DType dtype, In other) {
      std::vector<float> y(kSize);
      const PackedProduct one{{y.data(), dtype}, {bias.data(), DType::f32}, packed.w, f, other};
      kernel({&one, 1}, {x.data(), DType::f32}, kRows);
      return y;
    };
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      SCOPED_TRACE(testing::Message() << isa << " format " << static_cast<int>(format));
      const auto sums = multiply(cpu::packed_linear, {}, DType::f32, {});
      for (int kind = 0; kind <= static_cast<int>(Activation::sigmoid); ++kind) {
        const auto f = static_cast<Activation>(kind);
        std::vector<float> applied(kSize), added(kSize), rounded(kSize);
        cpu::activation({applied.data()}, {sums.data()}, f, kSize);
        cpu::add({added.data()}, {applied.data()}, {residual.data()}, kSize);
        cpu::convert({rounded.data(), DType::bf16}, {applied.data()}, kSize);
        const auto both = multiply(cpu::packed_linear, f, DType::f32, {residual.data()});
        EXPECT_TRUE(bits(both) == bits(added)) << kind;
        EXPECT_TRUE(bits(multiply(cpu::packed_linear, f, DType::bf16, {})) == bits(rounded))
            << kind;
        const auto truth = multiply(reference::packed_linear, f, DType::f32, {residual.data()});
        for (size_t i = 0; i < both.size(); ++i) {
          const float scale = 1 + std::abs(truth[i]);
          ASSERT_NEAR(both[i], truth[i], (format == WeightFormat::bf16 ? 1e-2f : 1e-4f) * scale);
        }
      }
    }
  }
}

// A product with packed fp32 or bf16 weights has the same bits as that of gemm on every instruction
// set; for bf16 weights, gemm receives x rounded to bf16.
TEST_F(PackedTest, FloatsGiveTheBitsOfGemm) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16}) {
    for (const int64_t width : {1, 64, 421, 900, 4100}) {
      const Packed packed(format, 83, width);
      const auto weights = packed.rows(), bias = random_floats(83, 3);
      const DType dtype = format == WeightFormat::bf16 ? DType::bf16 : DType::f32;
      const auto stored = [&](const std::vector<float>& values) {
        std::vector<bf16> halves;
        for (const float value : values) halves.push_back(narrow(value));
        return halves;
      };
      const auto weight_halves = stored(weights);
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 26, 40}) {
          const auto x = random_floats(rows * width, 1);
          const auto x_halves = stored(x);
          const auto in = [&](const auto& floats, const auto& halves) {
            return dtype == DType::bf16 ? In{halves.data(), dtype} : In{floats.data(), dtype};
          };
          std::vector<float> expected(static_cast<size_t>(rows * 83));
          cpu::gemm({expected.data(), DType::f32}, in(x, x_halves), in(weights, weight_halves),
                    {bias.data(), DType::f32}, {rows, 83, width, false, true});
          EXPECT_TRUE(bits(product(cpu::packed_linear, packed, x, rows, bias)) == bits(expected))
              << isa << " " << rows << " x " << width;
        }
      }
    }
  }
}

// Returns the bits of the result for each row of x, computed without the other rows.
std::vector<uint32_t> bits_of_rows(const Packed& packed, const std::vector<float>& x) {
  std::vector<uint32_t> all;
  for (auto row = x.begin(); row != x.end(); row += packed.w.width) {
    for (const uint32_t b :
         bits(product(cpu::packed_linear, packed, {row, row + packed.w.width}, 1)))
      all.push_back(b);
  }
  return all;
}

TEST_F(PackedTest, ARowHasTheSameBitsInAnyBatchOnAnyThreadsAndVectors) {
  const int64_t outputs = 211, most = 70;  // enough for several parts per thread
  std::vector<std::pair<WeightFormat, int64_t>> kinds = {{WeightFormat::int8, 0}};
  for (const WeightFormat format : kAllFormats) kinds.emplace_back(format, 32);
  for (const auto& [format, group] : kinds) {
    const int64_t width = width_for(format, 421);
    const auto x = random_floats(most * width, 1);
    const Packed packed(format, outputs, width, group);
    std::map<std::string, std::vector<uint32_t>> alone;  // by class of CPU
    const DType compute = format == WeightFormat::bf16 ? DType::bf16 : DType::f32;
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      const std::string name = numeric_class(compute);
      if (alone[name].empty()) alone[name] = bits_of_rows(packed, x);
      for (const int threads : {1, 2, 3}) {
        set_threads(threads);
        for (int64_t rows = 1; rows <= most; ++rows) {
          const auto got = bits(product(cpu::packed_linear, packed, x, rows));
          EXPECT_TRUE(std::equal(got.begin(), got.end(), alone[name].begin()))
              << static_cast<int>(format) << " " << group << " " << isa << " " << threads << " "
              << rows;
        }
      }
    }
  }
}

TEST_F(PackedTest, ProductsOfTheSameRowsHaveTheSameBitsTogetherAndSeparately) {
  for (const WeightFormat format : kAllFormats) {
    const int64_t width = width_for(format, 130);
    const Packed weights[] = {
        {format, 83, width}, {format, 0, width}, {format, 5, width}, {format, 64, width}};
    for (const int64_t rows : {1, 3, 200}) {
      const auto x = random_floats(rows * width, 1), bias = random_floats(83, 3);
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        for (const int threads : {1, 2, 5}) {
          set_threads(threads);
          std::vector<std::vector<float>> y;
          std::vector<PackedProduct> products;
          for (const Packed& packed : weights) {
            y.emplace_back(static_cast<size_t>(rows * packed.w.outputs), NAN);
            products.push_back(
                {{y.back().data(), DType::f32}, {bias.data(), DType::f32}, packed.w});
          }
          cpu::packed_linear(products, {x.data(), DType::f32}, rows);
          for (size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(bits(y[i]), bits(product(cpu::packed_linear, weights[i], x, rows, bias)))
                << isa << " " << threads << " " << rows << " of " << i;
          }
        }
      }
    }
  }
}

TEST_F(PackedTest, RowsWithOneScaleKeepTheirIntegersUntilTheEnd) {
  // The largest products in the longest row: the sums need all 32 bits.
  const int64_t width = 65536;
  Packed packed(WeightFormat::int8, 1, width, 0);
  packed.floats.assign(static_cast<size_t>(width), 1);
  pack(packed.w, {packed.floats.data(), DType::f32}, const_cast<void*>(packed.w.panels),
       packed.scales.data());
  const float expected = 65536.0f * 127 * 127 * widen_half(packed.scales[0]) * (1.0f / 127);
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    const auto got = product(cpu::packed_linear, packed, std::vector<float>(65536, 1), 1);
    EXPECT_NEAR(got[0] / expected, 1, 1e-6f) << isa;
  }
  EXPECT_THROW(group_size(0, width + 1), Error);
}

TEST_F(PackedTest, HandlesEmptyShapes) {
  for (const WeightFormat format : kAllFormats) {
    const int64_t width = width_for(format, 4);
    const Packed narrow_matrix(format, 20, 0), none(format, 0, width);
    const std::vector<float> bias(20, 1.5f);
    EXPECT_EQ(product(cpu::packed_linear, narrow_matrix, {}, 2, bias),
              std::vector<float>(40, 1.5f));
    const std::vector<float> x(static_cast<size_t>(width), 1);
    EXPECT_TRUE(product(cpu::packed_linear, none, x, 1).empty());
    EXPECT_TRUE(product(cpu::packed_linear, Packed(format, 3, width), {}, 0).empty());
  }
}

TEST_F(PackedTest, NonFiniteNumbersStayNonFinite) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const WeightFormat format : kAllFormats) {
      const int64_t width = width_for(format, 64);
      std::vector<float> x = random_floats(width, 1);
      x[7] = bad;
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        for (const float y : product(cpu::packed_linear, Packed(format, 5, width), x, 1))
          EXPECT_FALSE(std::isfinite(y));
      }
    }
  }
}

TEST_F(PackedTest, BlocksKeepEveryNumber) {
  for (const WeightFormat format : kBlockTypes) {
    const int64_t width = width_for(format, 600);
    for (const int64_t outputs : {1, 16, 37}) {
      const Packed packed(format, outputs, width);
      EXPECT_EQ(bits(packed.rows()), bits(packed.floats)) << block_format(format).name;
      EXPECT_EQ(packed.nonfinite, 0);
    }
  }
}

// int8 and int4 with groups of 32 hold the blocks Q8_0 and Q4_0.
TEST_F(PackedTest, IntegersHoldBlocks) {
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    Packed packed(format, 37, 96);
    const BlockFormat& layout = block_format(format);
    packed.blocks = random_blocks(format, 37 * 3, 5);
    packed.pack_again();
    std::vector<float> expected(37 * 96);
    for (size_t i = 0; i < packed.blocks.size(); ++i)
      decode_block(layout, packed.blocks[i], expected.data() + 32 * i);
    EXPECT_EQ(bits(packed.rows()), bits(expected));
  }
}

TEST_F(PackedTest, BlocksWithInfiniteScalesAreCountedAndGiveNoNumbers) {
  constexpr uint16_t kInfinity = 0x7c00, kNan = 0x7e00;
  for (const WeightFormat format : kBlockTypes) {
    const int64_t width = width_for(format, 600), size = block_format(format).block;
    const bool minimums = has_minimum(block_format(format).scales);
    for (const bool minimum : {false, true}) {
      if (minimum && !minimums) continue;
      Packed packed(format, 20, width);
      const bool wide = block_format(format).scales == BlockScales::bfloat;
      auto& block = packed.blocks[static_cast<size_t>(19 * (width / size) + 1)];
      (minimum ? block.minimum : block.scale) = wide ? 0x7f80 : minimum ? kNan : kInfinity;
      packed.pack_again();
      EXPECT_EQ(packed.nonfinite, size) << block_format(format).name;
      const auto x = random_floats(9 * width, 1);
      for (const std::string& isa : testable_isas()) {
        use_isa(isa);
        for (const int64_t rows : {1, 9}) {
          const auto y = product(cpu::packed_linear, packed, x, rows);
          for (int64_t i = 0; i < rows * 20; ++i)
            EXPECT_EQ(std::isfinite(y[static_cast<size_t>(i)]), i % 20 != 19);
        }
      }
    }
  }
}

TEST_F(PackedTest, QuantisedWeightsAreClose) {
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    const Packed packed(format, 33, 100);
    const auto rows = packed.rows();
    double error = 0, size = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      error += std::pow(rows[i] - packed.floats[i], 2);
      size += std::pow(packed.floats[i], 2);
    }
    EXPECT_LT(std::sqrt(error / size), format == WeightFormat::int8 ? 0.006 : 0.085);
  }
}

// Returns the sum of squared errors with the scale of llama.cpp (quantize_row_q4_0_ref of ggml).
double error_of_q4_0(const std::vector<float>& x) {
  float extreme = 0;
  for (const float v : x) extreme = std::abs(v) > std::abs(extreme) ? v : extreme;
  const float d = extreme / -8, inverse = d != 0 ? 1 / d : 0, scale = widen_half(narrow_to_half(d));
  double error = 0;
  for (const float v : x) {
    const int q = std::min(15, static_cast<int>(v * inverse + 8.5f)) - 8;
    error += std::pow(v - static_cast<float>(q) * scale, 2);
  }
  return error;
}

TEST_F(PackedTest, Int4ErrsLessThanQ4_0) {
  double ours = 0, theirs = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<float> x = random_floats(32, seed);
    int8_t q[32];
    const float scale = widen_half(quantize_group(x.data(), 32, WeightFormat::int4, q));
    for (size_t i = 0; i < 32; ++i) ours += std::pow(x[i] - static_cast<float>(q[i]) * scale, 2);
    theirs += error_of_q4_0(x);
  }
  EXPECT_LT(ours, 0.92 * theirs);
}

// Groups of all kinds: zeros, magnitudes whose scales are 0, subnormal or infinite in f16, and
// numbers half way between two integers.
std::vector<float> groups_of_all_kinds(int64_t count) {
  std::vector<float> x = random_floats(count, 7);
  constexpr float kFactors[] = {1, 0, 1e-7f, 3e-6f, 1e-30f, 4e5f, 6.5e5f, 1e8f, 1e30f};
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t group = i / 32;
    if (group % 11 == 9) x[i] = std::nearbyint(x[i] * 4) / 4;
    if (group % 11 == 10) x[i] = std::nearbyint(x[i]);
    if (group % 11 < 9) x[i] *= kFactors[group % 11];
  }
  return x;
}

// Quantises groups one by one.
std::vector<float> quantized_alone(const PackedMatrix& w, const std::vector<float>& x) {
  std::vector<float> y;
  for (int64_t n = 0; n < w.outputs; ++n) {
    for (int64_t k = 0; k < w.width; k += w.group) {
      const int64_t size = std::min(w.group, w.width - k);
      std::vector<int8_t> q(static_cast<size_t>(size));
      const uint16_t scale = quantize_group(x.data() + n * w.width + k, size, w.format, q.data());
      for (const int8_t number : q) y.push_back(static_cast<float>(number) * widen_half(scale));
    }
  }
  return y;
}

TEST_F(PackedTest, QuantizesLikeEachGroupAloneOnEveryInstructionSet) {
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
      for (const auto& [width, group] :
           {std::pair{64, 32}, {2016, 32}, {131, 64}, {640, 64}, {96, 0}}) {
        if (group == 0 && format == WeightFormat::int4) continue;
        Packed packed(format, 37, width, group);
        const std::vector<float> x = groups_of_all_kinds(37 * width);
        const int64_t bad = pack(packed.w, {x.data(), DType::f32},
                                 const_cast<void*>(packed.w.panels), packed.scales.data());
        EXPECT_EQ(bad, 0);
        EXPECT_EQ(bits(packed.rows()), bits(quantized_alone(packed.w, x)))
            << isa << " " << name_of(format) << " " << width << " " << group;
      }
    }
  }
}

TEST_F(PackedTest, QuantizedRowsOfAFileRoundTrip) {
  std::mt19937 random(1);
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    for (const int64_t width : {64, 65, 131}) {
      Packed packed(format, 37, width, 64);
      std::vector<uint8_t> rows(static_cast<size_t>(37 * quantized_row_bytes(packed.w))),
          again(rows);
      std::vector<uint16_t> scales(static_cast<size_t>(37 * groups_of(packed.w))),
          scales_again(scales);
      for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random());
      if (format == WeightFormat::int4 && width % 2 == 1)  // the last half byte is unused
        for (size_t n = 1; n <= 37; ++n) rows[n * rows.size() / 37 - 1] &= 15;
      for (uint16_t& scale : scales) scale = static_cast<uint16_t>(random() % 0x7c00);
      pack_quantized(packed.w, rows.data(), scales.data(), const_cast<void*>(packed.w.panels),
                     packed.scales.data());
      unpack_quantized(packed.w, again.data(), scales_again.data());
      EXPECT_EQ(rows, again);
      EXPECT_EQ(scales, scales_again);
    }
  }
}

}  // namespace
}  // namespace fovea
