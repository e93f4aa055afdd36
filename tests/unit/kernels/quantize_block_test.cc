// The search for scales: errors near those of the best possible choice, and special blocks.

#include "kernels/layout/quantize_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace fovea {
namespace {

struct Type {
  WeightFormat format;
  double error;  // limit of the relative root-mean-square error for normal numbers
  int bits;
};

class QuantizeBlock : public testing::TestWithParam<Type> {
 protected:
  const BlockFormat& format = block_format(GetParam().format);

  std::vector<float> quantized(const std::vector<float>& x, const float* weights = nullptr) const {
    std::vector<float> values(x.size());
    for (size_t i = 0; i < x.size(); i += static_cast<size_t>(format.block)) {
      WeightBlock block;
      quantize_block(format, x.data() + i, weights == nullptr ? weights : weights + i, block);
      decode_block(format, block, values.data() + i);
    }
    return values;
  }

  static std::vector<float> normal(size_t count, float deviation) {
    std::mt19937 random(1);
    std::normal_distribution<float> distribution(0, deviation);
    std::vector<float> x(count);
    for (float& value : x) value = distribution(random);
    return x;
  }

  // sqrt(sum w (x - y)^2 / sum w x^2)
  static double error(const std::vector<float>& x, const std::vector<float>& y,
                      const std::vector<float>& w = {}) {
    double difference = 0, whole = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double weight = w.empty() ? 1 : w[i];
      difference += weight * std::pow(x[i] - y[i], 2);
      whole += weight * std::pow(x[i], 2);
    }
    return std::sqrt(difference / whole);
  }

  // Rounds each group with the scale, and the minimum if the format has one, of its extreme values,
  // in float: without any search, but also without rounding the scales.
  std::vector<float> rounded(const std::vector<float>& x) const {
    const auto group = static_cast<size_t>(format.group);
    const auto levels = static_cast<float>((1 << GetParam().bits) - 1);
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); i += group) {
      const auto [low, high] = std::minmax_element(x.data() + i, x.data() + i + group);
      const bool minimum = has_minimum(format.scales);
      const float most = std::max(-*low, *high);
      const float scale = minimum ? (*high - *low) / levels : 2 * most / (levels - 1);
      const float zero = minimum ? *low : 0;
      for (size_t k = i; k < i + group; ++k)
        y.push_back(zero + scale * std::round((x[k] - zero) / scale));
    }
    return y;
  }
};

TEST_P(QuantizeBlock, IsMoreExactThanRounding) {
  for (const float deviation : {1e-3f, 0.02f, 50.0f}) {
    const std::vector<float> x = normal(64 * 256, deviation), y = quantized(x);
    EXPECT_LT(error(x, y), GetParam().error) << deviation;
    EXPECT_LT(error(x, y), error(x, rounded(x))) << deviation;
  }
}

TEST_P(QuantizeBlock, WeightedColumnsAreMoreExact) {
  const std::vector<float> x = normal(64 * 256, 0.02f);
  std::vector<float> w(x.size());
  for (size_t i = 0; i < w.size(); ++i) w[i] = i % 7 == 0 ? 10.0f : 0.1f;
  EXPECT_LT(error(x, quantized(x, w.data()), w), 0.9 * error(x, quantized(x), w));
}

TEST_P(QuantizeBlock, ValuesOfABlockAreKept) {
  const std::vector<float> x = quantized(normal(8 * 256, 0.02f)), y = quantized(x);
  EXPECT_LT(error(x, y), 0.4 * GetParam().error);
}

TEST_P(QuantizeBlock, ZerosStayZeros) {
  const std::vector<float> zeros(256);
  EXPECT_EQ(quantized(zeros), zeros);
  for (const float tiny : {1e-38f, -1e-20f, 1e-13f})
    for (const float value : quantized(std::vector<float>(256, tiny))) EXPECT_EQ(value, 0) << tiny;
}

TEST_P(QuantizeBlock, ConstantBlocks) {
  for (const float constant : {0.75f, -0.75f, 65504.0f, -65504.0f, 1e-3f}) {
    const std::vector<float> x(256, constant);
    EXPECT_LT(error(x, quantized(x)), 0.01) << constant;
  }
}

TEST_P(QuantizeBlock, OutliersAreKept) {
  std::vector<float> x = normal(256, 0.02f);
  x[17] = 30;
  x[200] = -25;
  const std::vector<float> y = quantized(x);
  EXPECT_NEAR(y[17], 30, 0.1 * 30);
  EXPECT_NEAR(y[200], -25, 0.1 * 25);
  // Groups without an outlier remain if they have their own scales.
  if (format.block == format.group) {
    const std::vector<float> before(x.begin() + 64, x.begin() + 128);
    EXPECT_LT(error(before, {y.begin() + 64, y.begin() + 128}), GetParam().error * 1.5);
  }
}

TEST_P(QuantizeBlock, ExtremeNumbersStayFinite) {
  std::mt19937 random(2);
  for (int n = 0; n < 200; ++n) {
    std::vector<float> x(256), w(256);
    for (float& value : x) {
      const float size = std::ldexp(1.0f, static_cast<int>(random() % 150) - 134);
      value =
          random() % 8 == 0 ? 0 : std::clamp(random() % 2 == 0 ? size : -size, -65504.0f, 65504.0f);
    }
    for (float& value : w) value = random() % 2 == 0 ? 1e-3f : 1e3f;
    for (const float value : quantized(x, w.data())) ASSERT_TRUE(std::isfinite(value)) << n;
  }
}

// The scales of MXFP4 are powers of two. ggml maps the largest magnitude to a number below 16.
TEST(QuantizeMxfp4, ComparesThePowersOfTwo) {
  const BlockFormat& format = block_format(WeightFormat::mxfp4);
  std::mt19937 random(1);
  std::normal_distribution<float> distribution(0, 0.02f);
  double error = 0, usual = 0;
  for (int n = 0; n < 500; ++n) {
    std::vector<float> x(32), y(32);
    for (float& value : x) value = distribution(random);
    WeightBlock block;
    quantize_block(format, x.data(), nullptr, block);
    decode_block(format, block, y.data());
    float most = 0;
    for (const float value : x) most = std::max(most, std::fabs(value));
    const float scale = std::exp2(std::floor(std::log2(most)) - 3);
    for (size_t i = 0; i < x.size(); ++i) {
      float nearest = 0;
      for (int k = 0; k < 16; ++k) {
        const float level = scale * static_cast<float>(format.table[k]);
        if (std::fabs(level - x[i]) < std::fabs(nearest - x[i])) nearest = level;
      }
      error += std::pow(double{y[i]} - x[i], 2);
      usual += std::pow(double{nearest} - x[i], 2);
    }
  }
  EXPECT_LT(error, 0.98 * usual);
}

TEST(QuantizeMxfp4, ExactAndSpecialNumbers) {
  const BlockFormat& format = block_format(WeightFormat::mxfp4);
  const auto quantized = [&](const std::vector<float>& x, const float* weights = nullptr) {
    WeightBlock block;
    std::vector<float> y(32);
    quantize_block(format, x.data(), weights, block);
    decode_block(format, block, y.data());
    return y;
  };
  std::vector<float> x(32), weights(32, 1e-3f);
  EXPECT_EQ(quantized(x), x);
  for (size_t i = 0; i < 32; ++i) x[i] = 0.125f * static_cast<float>(format.table[i % 16]);
  EXPECT_EQ(quantized(x), x);
  x.assign(32, 65504);
  EXPECT_EQ(quantized(x), std::vector<float>(32, 65536));
  EXPECT_EQ(quantized(std::vector<float>(32, 1e-20f)), std::vector<float>(32));
  x.assign(32, 0.1f);  // 0.09375 and 0.125 are the nearest numbers of two scales
  x[3] = 0.9f;         // 1 and 0.75
  weights[3] = 1e3f;
  EXPECT_EQ(quantized(x, weights.data())[3], 1);
}

INSTANTIATE_TEST_SUITE_P(
    Types, QuantizeBlock,
    testing::Values(Type{WeightFormat::int4, 0.083, 4}, Type{WeightFormat::q4_1, 0.072, 4},
                    Type{WeightFormat::q5_0, 0.042, 5}, Type{WeightFormat::q5_1, 0.035, 5},
                    Type{WeightFormat::q2_k, 0.28, 2}, Type{WeightFormat::q3_k, 0.15, 3},
                    Type{WeightFormat::q4_k, 0.072, 4}, Type{WeightFormat::q5_k, 0.036, 5},
                    Type{WeightFormat::q6_k, 0.018, 6}, Type{WeightFormat::iq4_nl, 0.077, 4},
                    Type{WeightFormat::iq4_xs, 0.078, 4}),
    [](const auto& named) { return std::string(name_of(named.param.format)); });

}  // namespace
}  // namespace fovea
