#include <gtest/gtest.h>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using namespace test;

// The logits of some rows, and log-probabilities of k classes of each; every fourth row is ignored.
struct Problem {
  Problem(Rows shape, int64_t k, DType dtype, float scale = 0.5f)
      : rows(shape),
        classes{k, scale},
        logits(Array::normal(shape.count * shape.width, dtype, 1, 4)),
        log_p(Array::normal(shape.count * (k + 1), DType::f32, 2)) {
    for (int64_t r = 0; r < shape.count; ++r)
      for (int64_t j = 0; j < k; ++j)
        top.push_back(r % 4 == 3 ? -1 : static_cast<int32_t>((j + 1) * shape.width / k - 1));
  }

  void forward(const Kernels& kernels, std::vector<Array>& o) const {
    kernels.kl_divergence(o[0].out(), o[1].out(), o[2].out(), logits.in(), top.data(), log_p.in(),
                          classes, rows);
  }

  Rows rows;
  TopClasses classes;
  Array logits, log_p;
  SharedVector<int32_t> top;
};

TEST(KlDivergence, MatchesTheReference) {
  for (const DType in : {DType::f32, DType::bf16}) {
    for (const bool add : {false, true}) {
      for (const Rows rows : {Rows{1, 1}, Rows{5, 7}, Rows{7, 131}, Rows{3, 2500}}) {
        for (const int64_t k : {int64_t{1}, std::min<int64_t>(5, rows.width), rows.width}) {
          const Problem p(rows, k, in);
          const Array row(rows.count, DType::f32),
              dlogits = Array::normal(rows.count * rows.width, in, 3, 0.1);
          compare_with_gpu(
              {row, row, row, dlogits},
              fmt::format("kl_divergence of {} x {}, {} classes", rows.count, rows.width, k),
              [&](const Kernels& kernels, std::vector<Array>& o) {
                p.forward(kernels, o);
                kernels.kl_divergence_backward(o[3].out(add), p.logits.in(), o[1].in(), o[2].in(),
                                               p.top.data(), p.log_p.in(), p.classes, 0.5f, rows,
                                               {});
              });
        }
      }
    }
  }
}

// Computes the gradients of some columns of complete rows.
TEST(KlDivergence, HasTheSameGradientsByColumns) {
  constexpr int64_t kRows = 5, kWidth = 2500;
  const Problem p({kRows, kWidth}, 9, DType::f32);
  const Array row(kRows, DType::f32), complete(kRows * kWidth, DType::f32);
  compare_with_gpu(
      {row, row, row, complete}, "kl_divergence by columns",
      [&](const Kernels& k, std::vector<Array>& o) {
        p.forward(k, o);
        const auto gradients = [&](Out out, In logits, int64_t begin, int64_t width) {
          k.kl_divergence_backward(out, logits, o[1].in(), o[2].in(), p.top.data(), p.log_p.in(),
                                   p.classes, 0.5f, {kRows, width}, {begin, kWidth});
        };
        gradients(o[3].out(), p.logits.in(), 0, kWidth);
        for (const auto& [begin, end] : {std::pair{0, 1}, {1, 1400}, {1400, 1401}, {1401, 2500}}) {
          const int64_t width = end - begin;
          Array part(kRows * width, DType::f32), found(kRows * width, DType::f32);
          k.copy_columns(part.out(), p.logits.in(), {kRows, width, kWidth, begin, width, 0});
          gradients(found.out(), part.in(), begin, width);
          wait_for_gpu();  // before the arrays of this part end
          for (int64_t r = 0; r < kRows; ++r)
            for (int64_t c = 0; c < width; ++c)
              ASSERT_EQ(found[r * width + c], o[3][r * kWidth + begin + c]) << r << ", " << c;
        }
      });
}

// A class of almost no probability has finite results.
TEST(KlDivergence, HandlesExtremeLogits) {
  for (const std::vector<double>& logits : {std::vector<double>{3e38, -3e38, 0},
                                            {1e4, 1e4, 1e4},
                                            {-1e30, 1, 2},
                                            {200, -200, -300},
                                            {-300, 200, -200}}) {
    const Array x(logits, DType::f32), one(1, DType::f32), three(3, DType::f32);
    const Array log_p({-0.5, -1.5, -2}, DType::f32);
    const SharedVector<int32_t> top = {0, 2};
    compare_with_gpu({one, one, one, three}, fmt::format("kl_divergence of {}", logits[0]),
                     [&](const Kernels& k, std::vector<Array>& o) {
                       k.kl_divergence(o[0].out(), o[1].out(), o[2].out(), x.in(), top.data(),
                                       log_p.in(), {2, 1}, {1, 3});
                       k.kl_divergence_backward(o[3].out(), x.in(), o[1].in(), o[2].in(),
                                                top.data(), log_p.in(), {2, 1}, 1, {1, 3}, {});
                       wait_for_gpu();
                       for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(o[3][i])) << i;
                     });
  }
}

}  // namespace
}  // namespace fovea
