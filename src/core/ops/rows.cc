// Rows and elements that are chosen by index.

#include <algorithm>

#include "base/error.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {

namespace {

// Returns dy with zeros in the rows whose id is `id`.
Tensor without_rows_of(const Tensor& dy, const Tensor& all, Rows rows, int64_t id) {
  if (id < 0) return dy;
  const HostValues<int32_t> ids(all);
  if (std::ranges::find(ids, id) == ids.end()) return dy;
  const Tensor kept = copy(dy), none = zeros({rows.width}, dy.dtype(), dy.device());
  const auto bytes = static_cast<int64_t>(none.bytes());
  for (int64_t i = 0; i < rows.count; ++i)
    if (ids[i] == id) copy_bytes(kept, i * bytes, none, 0, bytes);
  return kept;
}

// Looks up rows of the table; the table's gradient is summed by the given units.
Tensor rows_of_table(const char* op, const Tensor& ids, const Tensor& table, int64_t padding,
                     const RowUnits& units) {
  check(ids.dtype() == DType::i32, "{}: ids are {}; expected int32", op, name_of(ids.dtype()));
  check(table.rank() == 2, "{}: table is {}; expected [V, C]", op, table.shape());
  const int64_t entries = table.dim(0);
  const Rows rows{ids.size(), table.dim(1)};
  const Tensor there = ids.to(table.device());
  const HostValues<int32_t> id(ids);
  for (int64_t i = 0; i < rows.count; ++i) {
    check(id[i] >= 0 && id[i] < entries, "{}: id {} at position {}; expected 0 to {}", op, id[i], i,
          entries - 1);
  }
  Shape shape = ids.shape();
  shape.push_back(rows.width);
  Tensor y = empty(shape, table.dtype(), table.device());
  kernels(table).embedding(y, table, there, rows);

  if (!recording()) return y;
  return record(y, {table}, [=](const Tensor& dy, Gradients& d) {
    const Tensor kept = without_rows_of(dy, ids, rows, padding);
    kernels(dy).embedding_backward(d[table], kept, there,
                                   {rows.count, rows.width, units.of(rows.count)}, entries);
  });
}

}  // namespace

Tensor embedding(const Tensor& ids, const Tensor& table, int64_t padding) {
  return rows_of_table("embedding", ids, table, padding, row_units());
}

Tensor gather(const Tensor& rows, const Tensor& x) {
  return rows_of_table("gather", rows, x, -1, {});
}

Tensor pick(const Tensor& x, const Tensor& given) {
  const Tensor columns = given.to(x.device());
  check(x.rank() == 2 && columns.rank() == 2 && columns.dtype() == DType::i32 &&
            columns.dim(0) == x.dim(0),
        "pick: x is {}, columns are {} {}; expected [R, C] and int32 [R, k]", x.shape(),
        name_of(columns.dtype()), columns.shape());
  const Rows rows = rows_of(x);
  const int64_t k = columns.dim(1);
  const int64_t wrong = kernels(x).first_outside(columns, columns.size(), rows.width);
  if (wrong >= 0)
    fail(ErrorKind::InvalidArgument, "pick: column {} at position {}; expected 0 to {}",
         HostValues<int32_t>(given)[wrong], wrong, rows.width - 1);
  Tensor y = empty(columns.shape(), x.dtype(), x.device());
  kernels(x).pick(y, x, columns, k, rows);
  return record(y, {x}, [=, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).pick_backward(d[x], dy, columns, k, rows);
  });
}

}  // namespace fovea
