#include "kernels/isa.h"
#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

using test::compare_with_gpu;

constexpr DType kStored[] = {DType::f32, DType::bf16};
constexpr Rows kShapes[] = {{0, 5},   {1, 1},     {1, 33},   {3, 7},   {63, 128},
                            {65, 31}, {130, 131}, {257, 96}, {2, 1537}};

std::string describe(const char* op, Rows rows, DType y, DType x, bool add) {
  return fmt::format("{} of [{}, {}], {} from {}{}", op, rows.count, rows.width, name_of(y),
                     name_of(x), add ? ", added" : "");
}

template <class Test>
void each_case(const Test& test) {
  for (DType y : kStored) {
    for (DType x : kStored) {
      for (bool add : {false, true}) {
        for (Rows rows : kShapes) test(y, x, add, rows);
      }
    }
  }
}

TEST(Sums, MatchTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    const int64_t size = rows.count * rows.width;
    const Array x = Array::normal(size, in, 1), y = Array::normal(rows.width, out, 2);
    compare_with_gpu({y}, describe("sum_rows", rows, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& outputs) {
                       kernels.sum_rows(outputs[0].out(added), x.in(), rows);
                     });
  });
}

// The results are doubles and are compared in double precision.
TEST(Sums, UseDoublePrecisionOverAllElements) {
  for (DType in : kStored) {
    for (int64_t size : {0, 1, 15, 4095, 4097, 50021}) {
      const Array x = Array::normal(size, in, 1);
      std::vector<double> sums, squares;
      for (const std::string& isa : testable_isas()) {
        for (int threads : {1, 2}) {
          use_isa(isa);
          set_threads(threads);
          sums.push_back(cpu_kernels().sum(x.in(), size));
          squares.push_back(cpu_kernels().sum_of_squares(x.in(), size));
        }
      }
      sums.push_back(test::gpu_kernels().sum(x.in(), size));
      squares.push_back(test::gpu_kernels().sum_of_squares(x.in(), size));
      EXPECT_NEAR(sums[0], reference_kernels().sum(x.in(), size), 1e-10);
      EXPECT_NEAR(squares[0], reference_kernels().sum_of_squares(x.in(), size),
                  1e-12 * static_cast<double>(size));
      EXPECT_EQ(sums, std::vector<double>(sums.size(), sums[0]));
      EXPECT_EQ(squares, std::vector<double>(squares.size(), squares[0]));
    }
  }
  use_isa("auto");
  set_threads(2);
}

struct NormInputs {
  Array x, dy, weight, bias;
  NormInputs(Rows rows, DType in)
      : x(Array::normal(rows.count * rows.width, in, 1, 2)),
        dy(Array::normal(rows.count * rows.width, DType::bf16, 2)),
        weight(Array::normal(rows.width, DType::f32, 3)),
        bias(Array::normal(rows.width, in, 4)) {}
};

TEST(LayerNorm, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    const NormInputs inputs(rows, in);
    const Array y = Array::normal(rows.count * rows.width, out, 5);
    const Array statistics(rows.count, DType::f32),
        dparameter = Array::normal(rows.width, DType::f32, 6);
    for (const NormEpsilon epsilon : {NormEpsilon(1e-5f), NormEpsilon(0.3f, true)}) {
      compare_with_gpu(
          {y, y, statistics, statistics, y, dparameter, dparameter},
          describe("layer_norm", rows, out, in, added) + (epsilon.outside ? " outside" : ""),
          [&](const Kernels& kernels, std::vector<Array>& o) {
            const auto& [x, dy, weight, bias] = inputs;
            kernels.layer_norm(o[0].out(added), Out{}, Out{}, x.in(), weight.in(), In{}, epsilon,
                               rows);
            kernels.layer_norm(o[1].out(added), o[2].out(), o[3].out(), x.in(), weight.in(),
                               bias.in(), epsilon, rows);
            kernels.layer_norm_backward(o[4].out(added), o[5].out(added), o[6].out(added), dy.in(),
                                        x.in(), o[2].in(), o[3].in(), weight.in(), epsilon, rows);
          });
    }
  });
}

TEST(LayerNorm, DividesEqualNumbersByTheEpsilonOutside) {
  const Rows rows{1, 3};
  const Array x(std::vector<double>{7, 7, 7}, DType::f32),
      one(std::vector<double>(3, 1), DType::f32);
  for (const Kernels* kernels : {&cpu_kernels(), &reference_kernels()}) {
    Array y(3, DType::f32), mean(1, DType::f32), scale(mean), dx(y);
    const NormEpsilon epsilon(0.5f, true);
    kernels->layer_norm(y.out(), mean.out(), scale.out(), x.in(), one.in(), In{}, epsilon, rows);
    kernels->layer_norm_backward(dx.out(), Out{}, Out{}, one.in(), x.in(), mean.in(), scale.in(),
                                 one.in(), epsilon, rows);
    EXPECT_EQ(scale[0], 2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(y[i], 0) << i;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(dx[i], 0) << i;
  }
}

TEST(LayerNorm, BackwardSkipsUnusedOutputs) {
  const Rows rows{70, 50};
  const NormInputs inputs(rows, DType::f32);
  const Array mean = Array::normal(rows.count, DType::f32, 5),
              scale(std::vector<double>(70, 0.5), DType::f32);
  const Array dx(rows.count * rows.width, DType::f32), dparameter(rows.width, DType::f32);
  compare_with_gpu({dx, dparameter, dparameter}, "parts of layer_norm_backward",
                   [&](const Kernels& kernels, std::vector<Array>& o) {
                     const auto& [x, dy, weight, bias] = inputs;
                     kernels.layer_norm_backward(o[0].out(), Out{}, Out{}, dy.in(), x.in(),
                                                 mean.in(), scale.in(), weight.in(), 1e-5f, rows);
                     kernels.layer_norm_backward(Out{}, o[1].out(), o[2].out(), dy.in(), x.in(),
                                                 mean.in(), scale.in(), weight.in(), 1e-5f, rows);
                   });
}

TEST(LayerNorm, KeepsItsPrecisionFarFromZero) {
  const Rows rows{4, 384};
  std::vector<double> values;
  Random random(1, Stream::init);
  for (int64_t i = 0; i < rows.count * rows.width; ++i) values.push_back(1000 + random.normal());
  const Array x(values, DType::f32), weight(std::vector<double>(384, 1), DType::f32);
  Array y(x.size(), DType::f32), expected(y);
  cpu_kernels().layer_norm(y.out(), Out{}, Out{}, x.in(), weight.in(), In{}, 1e-5f, rows);
  reference_kernels().layer_norm(expected.out(), Out{}, Out{}, x.in(), weight.in(), In{}, 1e-5f,
                                 rows);
  for (int64_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], 2e-4);  // rounding of the mean, 1000 * 2^-24
}

TEST(LayerNorm, KeepsANaNInItsRow) {
  const Rows rows{3, 40};
  std::vector<double> values(120, 1.0);
  values[45] = std::nan("");
  const Array x(values, DType::f32), weight(std::vector<double>(40, 1), DType::f32);
  Array y(120, DType::f32);
  cpu_kernels().layer_norm(y.out(), Out{}, Out{}, x.in(), weight.in(), In{}, 1e-5f, rows);
  for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(std::isnan(y[i]), i / 40 == 1) << i;
}

TEST(RmsNorm, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    if (rows.width == 1) return;  // dx would be a difference of equal numbers
    const NormInputs inputs(rows, in);
    const Array y = Array::normal(rows.count * rows.width, out, 5);
    const Array statistics(rows.count, DType::f32),
        dweight = Array::normal(rows.width, DType::f32, 6);
    compare_with_gpu({y, statistics, y, dweight}, describe("rms_norm", rows, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& o) {
                       const auto& [x, dy, weight, bias] = inputs;
                       kernels.rms_norm(o[0].out(added), o[1].out(), x.in(), weight.in(), 1e-6f,
                                        rows);
                       kernels.rms_norm_backward(o[2].out(added), o[3].out(added), dy.in(), x.in(),
                                                 o[1].in(), weight.in(), rows);
                     });
  });
}

Array positive(int64_t size, DType dtype) {
  Array all(size, dtype);
  for (int64_t i = 0; i < size; ++i)
    reference::put(all.out(), i, 0.125 + static_cast<double>(i * 7 % 65) / 32);
  return all;
}

TEST(DynamicTanh, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    const NormInputs inputs(rows, in);
    const Array y = Array::normal(rows.count * rows.width, out, 5),
                alpha(std::vector<double>{0.7}, DType::f32);
    const Array dparameter = Array::normal(rows.width, DType::f32, 6),
                dalpha = positive(1, DType::f32), weights = positive(rows.width, DType::f32);
    compare_with_gpu(
        {y, y, y, dalpha, dparameter, dparameter}, describe("dynamic_tanh", rows, out, in, added),
        [&](const Kernels& kernels, std::vector<Array>& o) {
          const auto& [x, dy, weight, bias] = inputs;
          kernels.dynamic_tanh(o[0].out(added), x.in(), alpha.in(), weight.in(), In{}, rows);
          kernels.dynamic_tanh(o[1].out(added), x.in(), alpha.in(), weight.in(), bias.in(), rows);
          kernels.dynamic_tanh_backward(o[2].out(added), Out{}, o[4].out(added), o[5].out(added),
                                        dy.in(), x.in(), alpha.in(), weight.in(), rows);
          // With dy = x and positive weights, the sum of all elements consists of positive numbers;
          // the tolerance is not for sums that cancel.
          kernels.dynamic_tanh_backward(Out{}, o[3].out(added), Out{}, Out{}, x.in(), x.in(),
                                        alpha.in(), weights.in(), rows);
        });
  });
}

TEST(ScaleColumns, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    const NormInputs inputs(rows, in);
    const Array y = Array::normal(rows.count * rows.width, out, 5);
    compare_with_gpu({y, y}, describe("scale_columns", rows, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& o) {
                       const auto& [x, dy, weight, bias] = inputs;
                       kernels.scale_columns(o[0].out(added), x.in(), weight.in(), In{}, rows);
                       kernels.scale_columns(o[1].out(added), x.in(), weight.in(), bias.in(), rows);
                     });
  });
}

TEST(DynamicTanh, BackwardSkipsUnusedOutputs) {
  const Rows rows{70, 50};
  const NormInputs inputs(rows, DType::f32);
  const Array alpha(std::vector<double>{-2}, DType::f32), dx(rows.count * rows.width, DType::f32),
      dalpha(1, DType::f32);
  compare_with_gpu({dx, dalpha}, "parts of dynamic_tanh_backward",
                   [&](const Kernels& kernels, std::vector<Array>& o) {
                     const auto& [x, dy, weight, bias] = inputs;
                     kernels.dynamic_tanh_backward(o[0].out(), Out{}, Out{}, Out{}, dy.in(), x.in(),
                                                   alpha.in(), weight.in(), rows);
                     kernels.dynamic_tanh_backward(Out{}, o[1].out(), Out{}, Out{}, dy.in(), x.in(),
                                                   alpha.in(), weight.in(), rows);
                   });
}

test::SharedVector<int32_t> random_ids(int64_t count, int64_t entries) {
  Random random(9, Stream::init);
  test::SharedVector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(random.word() % static_cast<uint32_t>(entries)));
  return ids;
}

TEST(Embedding, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    for (int64_t entries : {1, 13, 300}) {
      const test::SharedVector<int32_t> ids = random_ids(rows.count, entries);
      const Array table = Array::normal(entries * rows.width, in, 1),
                  dy = Array::normal(rows.count * rows.width, in, 2);
      const Array y = Array::normal(rows.count * rows.width, out, 3);
      const Array dtable = Array::normal(entries * rows.width, out, 4);
      compare_with_gpu({y, dtable}, describe("embedding", rows, out, in, added),
                       [&](const Kernels& kernels, std::vector<Array>& o) {
                         kernels.embedding(o[0].out(added), table.in(), ids.data(), rows);
                         kernels.embedding_backward(o[1].out(added), dy.in(), ids.data(), rows,
                                                    entries);
                       });
    }
  });
}

TEST(Softmax, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    if (rows.width == 1) return;  // dx would be a difference of equal numbers
    const int64_t size = rows.count * rows.width;
    const Array x = Array::normal(size, in, 1), dy = Array::normal(size, DType::bf16, 2);
    const Array y = Array::normal(size, out, 3), probabilities(size, DType::f32);
    compare_with_gpu({y, probabilities, y}, describe("softmax", rows, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& o) {
                       kernels.softmax(o[0].out(added), x.in(), rows);
                       kernels.softmax(o[1].out(), x.in(), rows);
                       kernels.softmax_backward(o[2].out(added), dy.in(), o[1].in(), rows);
                     });
  });
}

TEST(DivideBySum, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    if (rows.width == 1) return;  // dx would be a difference of equal numbers
    const int64_t size = rows.count * rows.width;
    const Array x = positive(size, in), dy = Array::normal(size, DType::bf16, 2),
                y = Array::normal(size, out, 3);
    compare_with_gpu({y, y}, describe("divide_by_sum", rows, out, in, added),
                     [&](const Kernels& kernels, std::vector<Array>& o) {
                       kernels.divide_by_sum(o[0].out(added), x.in(), rows);
                       kernels.divide_by_sum_backward(o[1].out(added), dy.in(), x.in(), rows);
                     });
  });
}

TEST(DivideBySum, OfZerosIsZero) {
  const Array x(3, DType::f32), y(3, DType::f32);
  compare_with_gpu({y}, "divide_by_sum of zeros", [&](const Kernels& k, std::vector<Array>& o) {
    k.divide_by_sum(o[0].out(), x.in(), {1, 3});
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(o[0][i], 0);
  });
}

TEST(Softmax, KeepsANaNInItsRow) {
  const Array x({1, 2, std::nan(""), 3, 4, 5, 3e38, -3e38, 0}, DType::f32);
  Array y(9, DType::f32);
  compare_with_gpu({y}, "softmax of a NaN", [&](const Kernels& kernels, std::vector<Array>& o) {
    kernels.softmax(o[0].out(), x.in(), {3, 3});
  });
  cpu_kernels().softmax(y.out(), x.in(), {3, 3});
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(y[i]), i < 3) << i;
}

TEST(CrossEntropy, MatchesTheReference) {
  each_case([](DType out, DType in, bool added, Rows rows) {
    test::SharedVector<int32_t> targets = random_ids(rows.count, rows.width);
    for (size_t i = 0; i < targets.size(); i += 3) targets[i] = i % 2 == 0 ? targets[i] : -100;
    const Array logits = Array::normal(rows.count * rows.width, in, 1, 4);
    const Array losses(rows.count, DType::f32),
        dlogits = Array::normal(rows.count * rows.width, out, 2, 0.1),
        factors = Array::normal(rows.count, DType::f32, 3);
    for (const float smoothing : {0.0f, 0.1f})
      compare_with_gpu(
          {losses, losses, dlogits, dlogits}, describe("cross_entropy", rows, out, in, added),
          [&](const Kernels& kernels, std::vector<Array>& o) {
            kernels.cross_entropy(o[0].out(), o[1].out(), logits.in(), targets.data(), smoothing,
                                  rows);
            kernels.cross_entropy_backward(o[2].out(added), logits.in(), o[1].in(), targets.data(),
                                           {}, 0.5f, smoothing, rows, {});
            kernels.cross_entropy_backward(o[3].out(added), logits.in(), o[1].in(), targets.data(),
                                           factors.in(), 0.5f, smoothing, rows, {});
          });
  });
}

// Computes the gradients of some columns of complete rows.
TEST(CrossEntropy, HasTheSameGradientsByColumns) {
  constexpr int64_t kRows = 5, kWidth = 2500;
  const Rows all{kRows, kWidth};
  const test::SharedVector<int32_t> targets = {0, 1023, 2499, -1, 1400};
  const Array logits = Array::normal(kRows * kWidth, DType::f32, 1, 4);
  const Array losses(kRows, DType::f32), complete(kRows * kWidth, DType::f32);
  compare_with_gpu(
      {losses, losses, complete}, "cross_entropy by columns",
      [&](const Kernels& k, std::vector<Array>& o) {
        k.cross_entropy(o[0].out(), o[1].out(), logits.in(), targets.data(), 0.1f, all);
        k.cross_entropy_backward(o[2].out(), logits.in(), o[1].in(), targets.data(), {}, 0.5f, 0.1f,
                                 all, {});
        for (const auto& [begin, end] : {std::pair{0, 1}, {1, 1400}, {1400, 1401}, {1401, 2500}}) {
          const int64_t width = end - begin;
          Array part(kRows * width, DType::f32), found(kRows * width, DType::f32);
          const ColumnCopy columns{kRows, width, kWidth, begin, width, 0};
          k.copy_columns(part.out(), logits.in(), columns);
          k.cross_entropy_backward(found.out(), part.in(), o[1].in(), targets.data(), {}, 0.5f,
                                   0.1f, {kRows, width}, {begin, kWidth});
          test::wait_for_gpu();  // before the arrays of this part end
          for (int64_t r = 0; r < kRows; ++r)
            for (int64_t c = 0; c < width; ++c)
              ASSERT_EQ(found[r * width + c], o[2][r * kWidth + begin + c]) << r << ", " << c;
        }
      });
}

TEST(CrossEntropy, HandlesExtremeLogits) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<std::vector<double>> logits = {
      {3e38, -3e38, 0},     {1e4, 1e4, 1e4},
      {-infinity, 1, 2},    {-1e30, -1e30, -1e30},
      {1e-45, -1e-45, 0.0}, {1, nan, 2},
      {infinity, 1, 2},     {200, 100, 0},
      {nan, 1, 2},          {-infinity, -infinity, -infinity}};
  for (const auto& row : logits) {
    const Array x(row, DType::f32), one(1, DType::f32), three(3, DType::f32);
    const test::SharedVector<int32_t> target = {2};
    compare_with_gpu(
        {one, one, three}, fmt::format("cross_entropy of {}, {}, {}", row[0], row[1], row[2]),
        [&](const Kernels& kernels, std::vector<Array>& o) {
          kernels.cross_entropy(o[0].out(), o[1].out(), x.in(), target.data(), 0, {1, 3});
          kernels.cross_entropy_backward(o[2].out(), x.in(), o[1].in(), target.data(), {}, 1, 0,
                                         {1, 3}, {});
        });
  }
}

TEST(CrossEntropy, SumsALongRowPrecisely) {
  const Rows rows{2, 50257};
  const test::SharedVector<int32_t> targets = {50256, 17};
  const Array logits = Array::normal(rows.count * rows.width, DType::bf16, 1);
  const Array losses(2, DType::f32), dlogits(logits.size(), DType::f32);
  compare_with_gpu({losses, losses, dlogits}, "cross_entropy over a vocabulary",
                   [&](const Kernels& kernels, std::vector<Array>& o) {
                     kernels.cross_entropy(o[0].out(), o[1].out(), logits.in(), targets.data(), 0,
                                           rows);
                     kernels.cross_entropy_backward(o[2].out(), logits.in(), o[1].in(),
                                                    targets.data(), {}, 1, 0, rows, {});
                   });
}

}  // namespace
}  // namespace fovea
