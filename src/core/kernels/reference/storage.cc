#include "kernels/kv_page.h"
#include "kernels/packed.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void unpack_rows(Out y, const PackedMatrix& w, Indices rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    unpack_row(w, rows.data == nullptr ? i : rows.data[i],
               static_cast<float*>(y.data) + i * w.width);
}

void put_in_pages(std::span<const PageRows> rows) {
  for (const PageRows& part : rows) put_in_page(part);
}

}  // namespace fovea::reference
