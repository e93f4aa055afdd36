// Compares the kernels of recurrent cells with the reference.

#include "unit/kernels/compare.h"

namespace fovea {
namespace {

using test::Array;
using test::compare_with_gpu;

struct Size {
  int64_t rows, width, stride;
};

constexpr Size kSizes[] = {{1, 1, 1}, {2, 7, 3}, {3, 33, 1}, {130, 64, 2}, {5, 257, 1}};
constexpr Cell kCells[] = {Cell::rnn, Cell::gru, Cell::lstm};

TEST(RecurrentCell, MatchesTheReference) {
  for (const Cell cell : kCells) {
    for (const auto& [rows, width, stride] : kSizes) {
      const CellShape shape{cell, rows, width, stride};
      const int64_t G = gates_of(cell), K = kept_of(cell), states = rows * width;
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const Array x = Array::normal(states * stride * G, dtype, 1),
                    u = Array::normal(states * G, DType::f32, 2),
                    h0 = Array::normal(states, DType::f32, 3, 0.5),
                    c0 = Array::normal(states, DType::f32, 4);
        compare_with_gpu({Array(states, DType::f32), Array(states, DType::f32),
                          Array::normal(states * stride, dtype, 5),
                          Array::normal(states * stride * K, DType::f32, 6)},
                         fmt::format("cell {} of {} x {}", static_cast<int>(cell), rows, width),
                         [&](const Kernels& kernels, std::vector<Array>& o) {
                           kernels.recurrent_cell(o[0].out(), o[1].out(), o[2].out(), o[3].out(),
                                                  x.in(), u.in(), h0.in(), c0.in(), shape);
                         });
      }
    }
  }
}

TEST(RecurrentCell, GradientsMatchTheReference) {
  for (const Cell cell : kCells) {
    for (const auto& [rows, width, stride] : kSizes) {
      const CellShape shape{cell, rows, width, stride};
      const int64_t G = gates_of(cell), K = kept_of(cell), states = rows * width;
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const bool added : {false, true}) {
          const Array dy = Array::normal(states * stride, dtype, 1),
                      dh = Array::normal(states, DType::f32, 2),
                      dc = Array::normal(states, DType::f32, 3),
                      kept = Array::normal(states * stride * K, DType::f32, 4, 0.4),
                      h0 = Array::normal(states, DType::f32, 5),
                      c0 = Array::normal(states, DType::f32, 6),
                      c = Array::normal(states, DType::f32, 7);
          const auto gates = [&](int64_t times, uint64_t seed) {
            return Array::normal(states * times * G, dtype, seed);
          };
          compare_with_gpu(
              {gates(stride, 8), gates(stride, 9), gates(1, 10), Array(states, DType::f32),
               Array(states, DType::f32)},
              fmt::format("gradients of cell {} of {} x {}", static_cast<int>(cell), rows, width),
              [&](const Kernels& kernels, std::vector<Array>& o) {
                kernels.recurrent_cell_backward(
                    {o[0].out(added), o[1].out(), o[2].out(), o[3].out(), o[4].out()}, dy.in(),
                    dh.in(), dc.in(), kept.in(), h0.in(), c0.in(), c.in(), shape);
              });
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea
