#pragma once

#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea::cpu {

// The stored types of the CPU's table. Checked on entry to a kernel; inside, every type is one of
// the two.
inline void check_stored(DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) {
    fail(ErrorKind::Internal, "cpu kernel: the dtype is {}; expected fp32 or bf16", name_of(dtype));
  }
}

template <class... Arguments>
void check_stored_types(const Arguments&... arguments) {
  (check_stored(arguments.dtype), ...);
}

// The elements (about 32 KB of floats) that are worth a second thread: below, waking it costs more
// than it saves.
constexpr int64_t kGrainElements = 8192;

// The fewest rows that are worth a second thread.
inline int64_t grain_of(Rows rows) { return kGrainElements / (rows.width + 1) + 1; }

}  // namespace fovea::cpu
