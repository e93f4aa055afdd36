// Kernels that rotate, gather and scatter the vectors of tokens: rotate, unfold, columns, combine.

#include <numeric>

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;

using test::compare_with_gpu;

constexpr DType kStored[] = {DType::f32, DType::bf16};

template <class Test>
void each_type(const Test& test) {
  for (DType y : kStored) {
    for (DType x : kStored) {
      for (bool add : {false, true}) {
        SCOPED_TRACE(fmt::format("{} from {}{}", name_of(y), name_of(x), add ? ", added" : ""));
        test(y, x, add);
      }
    }
  }
}

TEST(Rotate, MatchesTheReference) {
  for (const auto& [rows, angle_rows, heads, width, rotated] :
       {std::array<int64_t, 5>{0, 1, 1, 2, 2},
        {1, 1, 1, 2, 2},
        {6, 3, 2, 7, 4},
        {5, 5, 3, 33, 0},
        {130, 65, 4, 64, 64},
        {7, 7, 2, 200, 134}}) {
    const int64_t half = rotated / 2, size = rows * heads * width;
    const Array cosines = Array::normal(angle_rows * half, DType::f32, 1),
                sines = Array::normal(angle_rows * half, DType::f32, 2);
    for (const Pairing pairing : {Pairing::halves, Pairing::neighbours}) {
      for (const bool inverse : {false, true}) {
        const Rotation rotation{rows, angle_rows, heads, width, rotated, pairing, inverse};
        each_type([&](DType out, DType in, bool added) {
          const Array x = Array::normal(size, in, 3);
          compare_with_gpu(
              {Array::normal(size, out, 4)}, fmt::format("rotate {} rows", rotation.rows),
              [&](const Kernels& kernels, std::vector<Array>& o) {
                kernels.rotate(o[0].out(added), x.in(), cosines.in(), sines.in(), rotation);
              });
        });
      }
    }
  }
}

TEST(Unfold, MatchesTheReference) {
  for (Windows w :
       {Windows{1, 1, 1, 1, 1, 0, 0}, Windows{2, 60, 33, 3, 2, 1, 0}, Windows{3, 11, 5, 4, 5, 3, 0},
        Windows{1, 3, 7, 9, 1, 4, 0}, Windows{2, 257, 20, 10, 1, 0, 0}}) {
    w.count = (w.tokens + 2 * w.padding - w.kernel) / w.stride + 1;
    const int64_t inside = w.batch * w.tokens * w.width;
    const int64_t outside = w.batch * w.count * w.width * w.kernel;
    each_type([&](DType out, DType in, bool added) {
      const Array x = Array::normal(inside, in, 1), dy = Array::normal(outside, in, 2);
      compare_with_gpu({Array::normal(outside, out, 3), Array::normal(inside, out, 4)},
                       fmt::format("unfold {} tokens", w.tokens),
                       [&](const Kernels& kernels, std::vector<Array>& o) {
                         kernels.unfold(o[0].out(added), x.in(), w);
                         kernels.unfold_backward(o[1].out(added), dy.in(), w);
                       });
    });
  }
}

TEST(CopyColumns, MatchesTheReference) {
  for (const ColumnCopy& c : {ColumnCopy{0, 3, 3, 0, 3, 0, 1}, ColumnCopy{1, 1, 1, 0, 1, 0, 1},
                              ColumnCopy{7, 5, 9, 4, 5, 0, 1}, ColumnCopy{3, 33, 33, 0, 70, 37, 4},
                              ColumnCopy{300, 64, 128, 64, 200, 8, 5}}) {
    const int64_t inside = c.rows * c.from_stride, outside = c.rows * c.copies * c.to_stride;
    each_type([&](DType out, DType in, bool added) {
      const Array x = Array::normal(inside, in, 1), dy = Array::normal(outside, in, 2);
      compare_with_gpu({Array::normal(outside, out, 3), Array::normal(inside, out, 4)},
                       fmt::format("copy_columns of {} rows", c.rows),
                       [&](const Kernels& kernels, std::vector<Array>& o) {
                         kernels.copy_columns(o[0].out(added), x.in(), c);
                         kernels.copy_columns_backward(o[1].out(added), dy.in(), c);
                       });
    });
  }
}

// Returns a permutation of [0, size): the multiples of a number that is coprime to `size`.
test::SharedVector<int32_t> shuffled(int64_t size) {
  test::SharedVector<int32_t> order;
  for (int64_t i = 0; i < size; ++i)
    order.push_back(static_cast<int32_t>(i * (std::gcd(size, int64_t{7}) == 1 ? 7 : 11) % size));
  return order;
}

TEST(Combine, MatchesTheReference) {
  for (const auto& [count, width, choices] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 33, 2}, {67, 130, 3}, {130, 257, 8}, {5, 7, 7}}) {
    const Rows rows{count, width};
    const int64_t k = choices, size = count * k, input = size * width, output = count * width;
    const test::SharedVector<int32_t> slots = shuffled(size);
    const Array weights = Array::normal(size, DType::f32, 1),
                dy = Array::normal(output, DType::f32, 2);
    each_type([&](DType out, DType in, bool added) {
      const Array z = Array::normal(input, in, 3);
      compare_with_gpu({Array::normal(output, out, 4), Array::normal(input, out, 5),
                        Array::normal(size, DType::f32, 6)},
                       fmt::format("combine {} of {} rows", k, rows.count),
                       [&](const Kernels& kernels, std::vector<Array>& o) {
                         kernels.combine(o[0].out(added), z.in(), slots.data(), weights.in(), k,
                                         rows);
                         kernels.combine_backward(o[1].out(added), o[2].out(added), dy.in(), z.in(),
                                                  slots.data(), weights.in(), k, rows);
                         kernels.combine_backward(Out{}, Out{}, dy.in(), z.in(), slots.data(),
                                                  weights.in(), k, rows);
                       });
    });
  }
}

}  // namespace
}  // namespace fovea
