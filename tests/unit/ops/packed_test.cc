// Ops with packed weights have the bits of those with the weights that these represent, while ops
// are recorded and for weights that are marked with multiply_exactly().

#include "ops/packed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "kernels/isa.h"
#include "ops/units.h"
#include "support/gradient_check.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr DType kDtypes[] = {DType::f32, DType::bf16, DType::f64};

Tensor leaf_of(Shape shape, uint64_t seed, DType dtype) {
  return convert(test::normal(std::move(shape), seed), dtype).want_gradient();
}

// Rows in memory, which count how many of them are packed.
class CountedRows : public WeightRows {
 public:
  CountedRows(const Tensor& matrix, std::atomic<int64_t>& packed)
      : matrix_(matrix), packed_(packed) {}
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override {
    packed_ += part.outputs;
    return pack_panels(part, matrix_.rows(first, first + part.outputs), 0, panels_of(part), panels,
                       scales);
  }
  int64_t count_nonfinite(const PackedMatrix&, int64_t, int64_t) const override { return 0; }
  void release(int64_t, int64_t) const override {}

 private:
  Tensor matrix_;
  std::atomic<int64_t>& packed_;
};

// Rows of one block each.
class Blocks : public WeightRows {
 public:
  explicit Blocks(std::vector<WeightBlock> blocks) : blocks_(std::move(blocks)) {
    for (const WeightBlock& block : blocks_)
      begins_.push_back(reinterpret_cast<const uint8_t*>(&block));
  }
  int64_t pack(const PackedMatrix& part, int64_t first, void* panels,
               uint16_t* scales) const override {
    const BlockReader copied = {sizeof(WeightBlock), [](const uint8_t* from, WeightBlock& to) {
                                  std::memcpy(&to, from, sizeof to);
                                }};
    const auto begins =
        std::span(begins_).subspan(static_cast<size_t>(first), static_cast<size_t>(part.outputs));
    return pack_panels(part, {begins, copied}, 0, panels_of(part), panels, scales);
  }
  int64_t count_nonfinite(const PackedMatrix&, int64_t, int64_t) const override { return 0; }
  void release(int64_t, int64_t) const override {}

 private:
  std::vector<WeightBlock> blocks_;
  std::vector<const uint8_t*> begins_;
};

// A weight of each kind: [83, 50] in the formats that pack floats, and [83, 256] of Q4_K.
std::vector<PackedWeight> packed_weights() {
  const Tensor weight = convert(test::normal({83, 50}, 2), DType::f32);
  std::vector<PackedWeight> all = {
      {weight, WeightFormat::f32, 0},   {weight, WeightFormat::bf16, 0},
      {weight, WeightFormat::int8, 32}, {weight, WeightFormat::int8, 0},
      {weight, WeightFormat::int4, 32}, {weight, WeightFormat::int4, 64}};
  std::vector<WeightBlock> blocks(83);
  Random random(1, Stream::init);
  for (WeightBlock& block : blocks) {
    for (uint8_t& number : block.numbers) number = static_cast<uint8_t>(random.word() % 16);
    block.scale = 0x0c00, block.minimum = 0x1c00;  // 2^-12, 2^-8
    for (int g = 0; g < 16; ++g) {
      block.scales[g] = static_cast<int8_t>(random.word() % 64);
      block.minimums[g] = static_cast<int8_t>(random.word() % 64);
    }
  }
  all.emplace_back(WeightFormat::q4_k, 83, 256, 32, std::make_unique<Blocks>(std::move(blocks)));
  all.back().packed();
  return all;
}

class PackedOps : public testing::Test {
 protected:
  void TearDown() override { use_isa("auto"); }

  // Compares the outputs and gradients of f(inputs, weight) and g(inputs, dense weight).
  template <class F, class G>
  static void expect_same_bits(const std::vector<Tensor>& inputs, const std::string& what,
                               const F& f, const G& g) {
    const auto results = [&](const auto& op) {
      const Tensor y = op(inputs);
      std::vector<std::vector<float>> all = {to_floats(y)};
      backward(y.size() == 1 ? y : test::weighted_sum(y));
      for (const Tensor& x : inputs) {
        if (!x) continue;
        all.push_back(to_floats(x.gradient()));
        x.clear_gradient();
      }
      return all;
    };
    EXPECT_TRUE(results(f) == results(g)) << what;
  }
};

TEST_F(PackedOps, LinearHasTheBitsOfDenseWeights) {
  for (const PackedWeight& packed : packed_weights()) {
    const Tensor dense = packed.floats();
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      for (const DType dtype : kDtypes) {
        for (const DType out : {dtype, DType::f32}) {
          const RowUnits units = {3, nullptr};
          const UnitScope scope(units);
          expect_same_bits(
              {leaf_of({3, 7, dense.dim(1)}, 1, dtype), leaf_of({83}, 3, DType::f32)},
              name_of(packed.matrix().format) + std::string(" ") + isa,
              [&](auto& in) { return linear(in[0], packed, in[1], out); },
              [&](auto& in) { return linear(in[0], dense, in[1], out); });
        }
      }
    }
  }
}

TEST_F(PackedOps, LayersOfTheSameInputHaveTheBitsOfDenseWeights) {
  for (const PackedWeight& packed : packed_weights()) {
    const Tensor dense = packed.floats(), none;
    expect_same_bits(
        {leaf_of({5, dense.dim(1)}, 1, DType::f32), leaf_of({83}, 3, DType::f32)},
        name_of(packed.matrix().format),
        [&](auto& in) {
          const std::vector<Tensor> y =
              linear(in[0], {{packed, in[1]}, {packed, none}, {packed, in[1]}}, DType::f32);
          return add(multiply(y[0], y[1]), y[2]);
        },
        [&](auto& in) {
          const Tensor first = linear(in[0], dense, in[1]), second = linear(in[0], dense, {}),
                       third = linear(in[0], dense, in[1]);
          return add(multiply(first, second), third);
        });
  }
}

TEST_F(PackedOps, GroupedLinearHasTheBitsOfDenseWeights) {
  for (const PackedWeight& packed : packed_weights()) {
    const Tensor dense = packed.floats();
    for (const DType dtype : kDtypes) {
      expect_same_bits(
          {leaf_of({9, dense.dim(1)}, 1, dtype), leaf_of({83}, 3, DType::f32),
           leaf_of({83}, 4, DType::f32)},
          name_of(packed.matrix().format),
          [&](auto& in) {
            return grouped_linear(in[0], {4, 5}, std::vector{packed, packed}, {in[1], in[2]});
          },
          [&](auto& in) {
            return grouped_linear(in[0], {4, 5}, std::vector{dense, dense}, {in[1], in[2]});
          });
    }
  }
}

TEST_F(PackedOps, LossesOfPackedHeadsHaveTheBitsOfDenseOnes) {
  const Tensor targets = empty({70}, DType::i32);
  for (int i = 0; i < 70; ++i) targets.data_as<int32_t>()[i] = i % 5 == 3 ? -1 : i * 37 % 83;
  for (const PackedWeight& packed : packed_weights()) {
    const Tensor dense = packed.floats();
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const LogitBlocks blocks : {LogitBlocks{}, LogitBlocks{1, 1}, LogitBlocks{33, 20}}) {
        for (const bool with_bias : {false, true}) {
          const LossOptions options = {.smoothing = 0.1f, .softcap = 5, .blocks = blocks};
          std::vector<Tensor> inputs = {leaf_of({70, dense.dim(1)}, 1, dtype), {}};
          if (with_bias) inputs[1] = leaf_of({83}, 3, DType::f32);
          expect_same_bits(
              inputs, name_of(packed.matrix().format),
              [&](auto& in) {
                return linear_cross_entropy(in[0], packed, in[1], targets, options);
              },
              [&](auto& in) {
                const Tensor logits = linear(in[0], dense, in[1], DType::f32);
                return cross_entropy(softcap(logits, 5), targets, 0, 0.1f);
              });
        }
      }
    }
  }
}

TEST_F(PackedOps, HaveTheGradientsOfFiniteDifferences) {
  for (PackedWeight packed : packed_weights()) {
    packed.multiply_exactly();
    const int64_t width = packed.matrix().width;
    test::check_gradients({test::normal({3, width}, 1), test::normal({83}, 2)},
                          [&](auto& in) { return linear(in[0], packed, in[1], DType::f64); });
    test::check_gradients({test::normal({4, width}, 1)}, [&](auto& in) {
      return grouped_linear(in[0], {1, 3}, std::vector{packed, packed}, {});
    });
  }
}

TEST_F(PackedOps, RoundTheirInputOnlyInInference) {
  PackedWeight packed(convert(test::normal({83, 50}, 2), DType::f32), WeightFormat::int8, 32);
  const Tensor x = convert(test::normal({4, 50}, 1), DType::f32);
  const auto product = [&] { return to_floats(linear(x, packed, {}, DType::f32)); };
  const auto grouped = [&] { return to_floats(grouped_linear(x, {4}, std::vector{packed}, {})); };
  EXPECT_TRUE(packed.multiplies_exactly());
  const std::vector<float> recorded = product();
  EXPECT_EQ(recorded, to_floats(linear(x, packed.floats(), {}, DType::f32)));
  const NoGradient off;
  EXPECT_FALSE(packed.multiplies_exactly());
  EXPECT_NE(product(), recorded);
  EXPECT_NE(grouped(), recorded);
  packed.multiply_exactly();
  EXPECT_EQ(product(), recorded);
  EXPECT_EQ(grouped(), recorded);
  EXPECT_TRUE(packed.to(cpu_device()).multiplies_exactly());
}

// The larger weight has two parts.
TEST_F(PackedOps, HaveTheSameBitsWithWeightsThatArePackedLate) {
  const NoGradient off;
  for (const int64_t outputs : {83, 2300}) {
    const Tensor weight = convert(test::normal({outputs, 1024}, 2), DType::f32);
    const Tensor bias = convert(test::normal({outputs}, 3), DType::f32);
    const Tensor x = convert(test::normal({5, 1024}, 1), DType::f32);
    Tensor ids = empty({300}, DType::i32);  // more than are packed together
    for (int32_t i = 0; i < 300; ++i)
      ids.data_as<int32_t>()[i] = i == 0 ? static_cast<int32_t>(outputs - 1) : i * 7 % 83;
    for (const WeightFormat format :
         {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
      const auto results = [&](const PackedWeight& w) {
        auto all = to_floats(linear(x, w, bias, DType::f32));
        for (const Tensor& y : {grouped_linear(x, {2, 0, 3}, std::vector{w, w, w}, {}),
                                linear(x.rows(0, 1), w, {}, DType::bf16), embedding(ids, w)}) {
          const auto floats = to_floats(y);
          all.insert(all.end(), floats.begin(), floats.end());
        }
        return all;
      };
      const std::vector<float> expected = results(PackedWeight(weight, format, 32));
      std::atomic<int64_t> packed = 0;
      const auto late = [&] {
        return PackedWeight(format, outputs, 1024, 32,
                            std::make_unique<CountedRows>(weight, packed));
      };
      const PackedWeight one = late();
      EXPECT_EQ(to_floats(embedding(ids, one)).size(), 300U * 1024);
      EXPECT_NE(one.rows(), nullptr) << "few rows are needed of a table";
      packed = 0;
      EXPECT_EQ(results(one), expected);
      EXPECT_EQ(packed, 2 * outputs) << "once for the first use and once for good";
      EXPECT_EQ(one.rows(), nullptr);
      PackedWeight other = late();
      other.stay_in_rows();
      EXPECT_EQ(results(other), expected);
      EXPECT_EQ(results(other), expected);
      EXPECT_NE(other.rows(), nullptr);
      EXPECT_EQ(to_floats(late().floats()), to_floats(PackedWeight(weight, format, 32).floats()));
    }
  }
}

}  // namespace
}  // namespace fovea
