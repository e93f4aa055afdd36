// Copies of rows and columns.

#include <vector>

#include "kernels/layout/kv_page.h"
#include "kernels/layout/packed.h"
#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void embedding(Out y, In table, Indices ids, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    for (int64_t j = 0; j < rows.width; ++j)
      put(y, i * rows.width + j, get(table, ids[i] * rows.width + j));
  }
}

void embedding_backward(Out dtable, In dy, Indices ids, Rows rows, int64_t entries) {
  std::vector<double> sums(static_cast<size_t>(entries * rows.width));
  for (int64_t i = 0; i < rows.count; ++i) {
    double* row = sums.data() + ids[i] * rows.width;
    for (int64_t j = 0; j < rows.width; ++j) row[j] += get(dy, i * rows.width + j);
  }
  for (size_t i = 0; i < sums.size(); ++i) put(dtable, static_cast<int64_t>(i), sums[i]);
}

namespace {

// The index in y of element i of copy j of row r.
int64_t to(const ColumnCopy& c, int64_t r, int64_t j, int64_t i) {
  return (r * c.copies + j) * c.to_stride + c.to + i;
}

// The index in x of element i of row r.
int64_t from(const ColumnCopy& c, int64_t r, int64_t i) { return r * c.from_stride + c.from + i; }

}  // namespace

void copy_columns(Out y, In x, const ColumnCopy& c) {
  for (int64_t r = 0; r < c.rows; ++r)
    for (int64_t j = 0; j < c.copies; ++j)
      for (int64_t i = 0; i < c.width; ++i) put(y, to(c, r, j, i), get(x, from(c, r, i)));
}

void copy_columns_backward(Out dx, In dy, const ColumnCopy& c) {
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t i = 0; i < c.width; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < c.copies; ++j) sum += get(dy, to(c, r, j, i));
      put(dx, from(c, r, i), sum);
    }
  }
}

namespace {

// Calls visit(index in y, index in x) for each element of each window; the index in x is -1 outside
// x.
template <class Visit>
void each_element(const Windows& w, const Visit& visit) {
  int64_t index = 0;
  for (int64_t row = 0; row < w.batch * w.count; ++row) {
    const int64_t begin = row % w.count * w.stride - w.padding;
    for (int64_t c = 0; c < w.width; ++c) {
      for (int64_t t = begin; t < begin + w.kernel; ++t) {
        const bool inside = t >= 0 && t < w.tokens;
        visit(index++, inside ? (row / w.count * w.tokens + t) * w.width + c : -1);
      }
    }
  }
}

}  // namespace

void unfold(Out y, In x, const Windows& w) {
  each_element(w, [&](int64_t to, int64_t from) { put(y, to, from < 0 ? 0 : get(x, from)); });
}

void unfold_backward(Out dx, In dy, const Windows& w) {
  std::vector<double> sums(static_cast<size_t>(w.batch * w.tokens * w.width));
  each_element(w, [&](int64_t from, int64_t to) {
    if (to >= 0) sums[static_cast<size_t>(to)] += get(dy, from);
  });
  for (size_t i = 0; i < sums.size(); ++i) put(dx, static_cast<int64_t>(i), sums[i]);
}

void unpack_rows(Out y, const PackedMatrix& w, Indices rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    unpack_row(w, rows.data == nullptr ? i : rows.data[i],
               static_cast<float*>(y.data) + i * w.width);
}

void quantize_groups(WeightFormat format, const float* x, int64_t groups, int64_t size,
                     uint8_t* numbers, uint16_t* scales, int64_t stride) {
  std::vector<int8_t> q(static_cast<size_t>(size));
  const int offset = format == WeightFormat::int8 ? 128 : 8;
  for (int64_t g = 0; g < groups; ++g, x += size, numbers += size) {
    scales[g * stride] = quantize_group(x, size, format, q.data());
    for (int64_t i = 0; i < size; ++i)
      numbers[i] = static_cast<uint8_t>(q[static_cast<size_t>(i)] + offset);
  }
}

void put_in_pages(std::span<const PageRows> rows) {
  for (const PageRows& part : rows) put_in_page(part);
}

}  // namespace fovea::reference
