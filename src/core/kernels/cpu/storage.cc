#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/layout/kv_page.h"
#include "kernels/layout/packed.h"

namespace fovea::cpu {

void unpack_rows(Out y, const PackedMatrix& w, Indices rows, int64_t count) {
  constexpr int64_t kGrain = 16384;  // elements that are worth another thread
  auto* to = static_cast<float*>(y.data);
  const int32_t* row = rows;
  parallel_for(count, kGrain / (w.width + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      unpack_row(w, row == nullptr ? i : row[i], to + i * w.width);
  });
}

void put_in_pages(std::span<const PageRows> rows) {
  // The number of elements that is worth another thread. It is small, because each element of a key
  // is on a different cache line.
  constexpr int64_t kGrain = 1024;
  int64_t size = 0;
  for (const PageRows& part : rows) size += part.count * part.layout->heads * part.layout->width;
  const int64_t count = std::ssize(rows);
  parallel_for(count, kGrain * count / (size + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) put_in_page(rows[static_cast<size_t>(i)]);
  });
}

}  // namespace fovea::cpu
