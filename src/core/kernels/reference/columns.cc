#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
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

}  // namespace fovea::reference
