#include "kernels/layout/packed_moments.h"

#include <gtest/gtest.h>

#include <tuple>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

int64_t blocks_of(int64_t size) { return (size + kMomentBlock - 1) / kMomentBlock; }

// Weights and packed moments, which begin as 0.
struct State {
  Array weight, largest_m, largest_v;
  test::SharedVector<uint8_t> m, v;

  explicit State(const Array& weights)
      : weight(weights),
        largest_m(std::vector<double>(static_cast<size_t>(blocks_of(weights.size()))), DType::f32),
        largest_v(largest_m),
        m(static_cast<size_t>(weights.size())),
        v(m) {}

  void step(const Kernels& kernels, const Array& gradient, uint64_t step) {
    const float n = static_cast<float>(step);
    const AdamW adamw{.rate = 1e-2f,
                      .decay = 0.1f,
                      .correction1 = 1 - std::pow(0.9f, n),
                      .correction2 = 1 - std::pow(0.95f, n),
                      .gradient_scale = 0.7f};
    kernels.packed_adamw(weight.out(),
                         {.m = {m.data(), DType::u8},
                          .v = {v.data(), DType::u8},
                          .largest_m = largest_m.out(),
                          .largest_v = largest_v.out(),
                          .seed = 5,
                          .step = step,
                          .parameter = 3},
                         gradient.in(), adamw, weight.size());
  }
  // The numbers that the codes stand for: m, and sqrt(v).
  std::pair<Array, Array> moments() const {
    std::vector<double> first, root;
    for (size_t i = 0; i < m.size(); ++i) {
      const auto block = static_cast<int64_t>(i) / kMomentBlock;
      const double size = MCode::value(m[i] & 0x7f) * largest_m[block];
      first.push_back(m[i] >= 0x80 ? -size : size);
      root.push_back(VCode::value(v[i]) * largest_v[block]);
    }
    return {Array(first, DType::f32), Array(root, DType::f32)};
  }
};

TEST(PackedAdamW, MatchesTheReference) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{255}, int64_t{257},
                             int64_t{1300}, int64_t{20011}}) {
    const Array weight = Array::normal(size, DType::f32, 1);
    const Array empty(size, DType::f32);
    test::compare_with_gpu({weight, empty, empty}, fmt::format("packed_adamw of {}", size),
                           [&](const Kernels& kernels, std::vector<Array>& outputs) {
                             State state(weight);
                             for (uint64_t step = 1; step <= 3; ++step) {
                               const Array gradient = Array::normal(size, DType::f32, step, 1e-3);
                               state.step(kernels, gradient, step);
                               test::wait_for_gpu();  // before the gradient ends
                             }
                             outputs[0] = state.weight;
                             std::tie(outputs[1], outputs[2]) = state.moments();
                           });
  }
}

// Rounding at random lets a moment follow changes that are much smaller than the distance of two
// codes: without gradients, sqrt(v) falls by 2.5% per step, m by 10%.
TEST(PackedAdamW, FollowsSmallChanges) {
  constexpr int64_t kSize = 4096;
  const Array one(std::vector<double>(kSize, 1), DType::f32);
  const Array zero(std::vector<double>(kSize, 0), DType::f32);
  State state(one);
  state.step(cpu_kernels(), one, 1);
  const double first_m = state.moments().first[0], first_root = state.moments().second[0];
  EXPECT_NEAR(first_m, 0.07, 1e-6);
  EXPECT_NEAR(first_root, std::sqrt(0.05) * 0.7, 1e-6);
  // The first element of each block keeps a gradient, so that the others are fractions of it.
  std::vector<double> sparse(kSize, 0);
  for (size_t i = 0; i < kSize; i += kMomentBlock) sparse[i] = 1;
  for (uint64_t step = 2; step <= 21; ++step)
    state.step(cpu_kernels(), Array(sparse, DType::f32), step);
  const auto [m, root] = state.moments();
  double mean_m = 0, mean_root = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    if (i % kMomentBlock == 0) continue;
    mean_m += m[i];
    mean_root += root[i];
  }
  const double count = kSize - kSize / kMomentBlock;
  EXPECT_NEAR(mean_m / count / first_m, std::pow(0.9, 20), 0.005);
  EXPECT_NEAR(mean_root / count / first_root, std::pow(0.95, 10), 0.005);
}

TEST(PackedAdamW, RoundsToTheNearestCodesByTheirDistances) {
  for (int32_t code = 0; code < 128; ++code) {
    EXPECT_EQ(MCode::of(MCode::value(code), 0), code);
    EXPECT_EQ(MCode::of(MCode::value(code), 0xffff), code);
  }
  for (int32_t code = 0; code < 256; ++code) EXPECT_EQ(VCode::of(VCode::value(code), 0xffff), code);
  EXPECT_EQ(MCode::value(127), 1);
  EXPECT_EQ(VCode::value(255), 1);
  const float a = VCode::value(200), b = VCode::value(201), x = a + (b - a) / 4;
  EXPECT_EQ(VCode::of(x, 0xbfff), 200);
  EXPECT_EQ(VCode::of(x, 0xc000), 201);
}

// A sqrt(v) of 0 would give a huge step.
TEST(PackedAdamW, KeepsASmallSecondMomentAboveZero) {
  std::vector<double> gradient(kMomentBlock, 1e-9);
  gradient[0] = 1;
  const Array weight(std::vector<double>(kMomentBlock, 0), DType::f32);
  for (const Kernels* kernels : {&cpu_kernels(), &reference_kernels()}) {
    State state(weight);
    for (uint64_t step = 1; step <= 30; ++step)
      state.step(*kernels, Array(gradient, DType::f32), step);
    for (int64_t i = 1; i < kMomentBlock; ++i) {
      EXPECT_GT(state.v[static_cast<size_t>(i)], 0);
      EXPECT_LE(std::abs(state.weight[i]), 30 * 1.1e-2);
    }
  }
}

}  // namespace
}  // namespace fovea
