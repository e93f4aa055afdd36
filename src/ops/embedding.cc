#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor embedding(const Tensor& ids, const Tensor& table) {
  check(ids.dtype() == DType::i32, "embedding: ids are {}; expected int32", name_of(ids.dtype()));
  check(table.rank() == 2, "embedding: table is {}; expected [V, C]", table.shape());
  const int64_t entries = table.dim(0);
  const Rows rows{ids.size(), table.dim(1)};
  const int32_t* id = ids.data_as<int32_t>();
  for (int64_t i = 0; i < rows.count; ++i) {
    check(id[i] >= 0 && id[i] < entries, "embedding: id {} at place {}; expected 0 to {}", id[i], i,
          entries - 1);
  }
  Shape shape = ids.shape();
  shape.push_back(rows.width);
  Tensor y = empty(shape, table.dtype());
  kernels(table).embedding(y, table, id, rows);

  return record(y, {table}, [=](const Tensor& dy, Gradients& d) {
    kernels(dy).embedding_backward(d[table], dy, ids.data_as<int32_t>(), rows, entries);
  });
}

}  // namespace fovea
