// The entries over rows.

#include "kernels/cuda/start.h"
#include "kernels/row_blocks.h"

namespace fovea::cuda {
namespace {

// Threads for the columns of each block of rows.
Launch over_columns(int64_t width, const RowBlocks& blocks) {
  Launch how = over(width);
  how.blocks_y = static_cast<int>(blocks.count());
  return how;
}

// y[width] (+)= the sum over the blocks of partial [blocks, stride].
void add_blocks(Out y, const float* partial, const RowBlocks& blocks, int64_t stride,
                int64_t width) {
  if (y.data == nullptr) return;
  const OnDevice of_units(std::span<const int64_t>(blocks.of_units));
  launch(kernel::add_blocks, over(width), y, partial, of_units.data(),
         std::ssize(blocks.of_units) - 1, stride, width);
}

}  // namespace

void sum_rows(Out y, In x, Rows rows) {
  const RowBlocks blocks(rows);
  if (rows.width == 0) return;
  const OnDevice<float> partial(
      static_cast<size_t>(std::max<int64_t>(1, blocks.count() * rows.width)));
  if (blocks.count() > 0) {
    const OnDevice starts(std::span<const int64_t>(blocks.rows));
    launch(kernel::sum_rows_of_blocks, over_columns(rows.width, blocks), partial.data(), x,
           starts.data(), rows.width);
  }
  add_blocks(y, partial.data(), blocks, rows.width, rows.width);
}

void layer_norm(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon,
                Rows rows) {
  if (rows.count > 0)
    launch(kernel::norm_rows, over_rows(rows.count), y, mean, scale, x, weight, bias, epsilon, true,
           rows.count, rows.width);
}

void rms_norm(Out y, Out scale, In x, In weight, float epsilon, Rows rows) {
  if (rows.count > 0)
    launch(kernel::norm_rows, over_rows(rows.count), y, Out(), scale, x, weight, In(),
           NormEpsilon(epsilon), false, rows.count, rows.width);
}

namespace {

void norm_backward(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale, In weight,
                   NormEpsilon epsilon, bool centred, Rows rows) {
  const RowBlocks blocks(rows);
  if (dx.data != nullptr && rows.count > 0)
    launch(kernel::norm_backward_rows, over_rows(rows.count), dx, dy, x, mean, scale, weight,
           epsilon, centred, rows.count, rows.width);
  if ((dweight.data == nullptr && dbias.data == nullptr) || rows.width == 0) return;
  const int64_t stride = 2 * rows.width;
  const OnDevice<float> partial(static_cast<size_t>(std::max<int64_t>(1, blocks.count() * stride)));
  if (blocks.count() > 0) {
    const OnDevice starts(std::span<const int64_t>(blocks.rows));
    launch(kernel::norm_backward_columns, over_columns(rows.width, blocks), partial.data(), dy, x,
           mean, scale, centred, starts.data(), rows.width);
  }
  add_blocks(dweight, partial.data(), blocks, stride, rows.width);
  add_blocks(dbias, partial.data() + rows.width, blocks, stride, rows.width);
}

}  // namespace

void layer_norm_backward(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale, In weight,
                         NormEpsilon epsilon, Rows rows) {
  norm_backward(dx, dweight, dbias, dy, x, mean, scale, weight, epsilon, true, rows);
}

void rms_norm_backward(Out dx, Out dweight, In dy, In x, In scale, In weight, Rows rows) {
  norm_backward(dx, dweight, {}, dy, x, {}, scale, weight, 0, false, rows);
}

void softmax(Out y, In x, Rows rows) {
  if (rows.count > 0) launch(kernel::softmax, over_rows(rows.count), y, x, rows.count, rows.width);
}

void softmax_backward(Out dx, In dy, In y, Rows rows) {
  if (rows.count > 0)
    launch(kernel::softmax_backward, over_rows(rows.count), dx, dy, y, rows.count, rows.width);
}

void divide_by_sum(Out y, In x, Rows rows) {
  if (rows.count > 0)
    launch(kernel::divide_by_sum, over_rows(rows.count), y, x, rows.count, rows.width);
}

void divide_by_sum_backward(Out dx, In dy, In x, Rows rows) {
  if (rows.count > 0)
    launch(kernel::divide_by_sum_backward, over_rows(rows.count), dx, dy, x, rows.count,
           rows.width);
}

void scale_columns(Out y, In x, In factors, In bias, Rows rows) {
  if (rows.count > 0 && rows.width > 0)
    launch(kernel::scale_columns, over(rows.count * rows.width), y, x, factors, bias, rows.count,
           rows.width);
}

void dynamic_tanh(Out y, In x, In alpha, In weight, In bias, Rows rows) {
  if (rows.count > 0 && rows.width > 0)
    launch(kernel::dynamic_tanh, over(rows.count * rows.width), y, x, alpha, weight, bias,
           rows.count, rows.width);
}

void dynamic_tanh_backward(Out dx, Out dalpha, Out dweight, Out dbias, In dy, In x, In alpha,
                           In weight, Rows rows) {
  if (rows.width == 0) return;
  const RowBlocks blocks(rows);
  const int64_t stride = 2 * rows.width;
  const OnDevice<float> totals(static_cast<size_t>(std::max<int64_t>(1, rows.count)));
  const OnDevice<float> partial(static_cast<size_t>(std::max<int64_t>(1, blocks.count() * stride)));
  if (rows.count > 0) {
    launch(kernel::dynamic_tanh_backward_rows, over_rows(rows.count), dx, totals.data(), dy, x,
           alpha, weight, rows.count, rows.width);
    const OnDevice starts(std::span<const int64_t>(blocks.rows));
    launch(kernel::dynamic_tanh_backward_columns, over_columns(rows.width, blocks), partial.data(),
           dy, x, alpha, starts.data(), rows.width);
  }
  add_blocks(dweight, partial.data(), blocks, stride, rows.width);
  add_blocks(dbias, partial.data() + rows.width, blocks, stride, rows.width);
  if (dalpha.data != nullptr) sum_rows(dalpha, In(totals.data()), {rows.count, 1, rows.units});
}

}  // namespace fovea::cuda
