#pragma once

#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea::cpu {

// Throws Internal if the dtype is not one of the two stored types of the CPU's table. Kernels call
// it on entry.
inline void check_stored(DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) {
    fail(ErrorKind::Internal, "cpu kernel: the dtype is {}; expected fp32 or bf16", name_of(dtype));
  }
}

template <class... Arguments>
void check_stored_types(const Arguments&... arguments) {
  (check_stored(arguments.dtype), ...);
}

// The number of elements (about 32 KB of floats) that is worth a second thread: for fewer, waking
// the thread costs more than it saves.
constexpr int64_t kGrainElements = 8192;

// Returns the fewest rows that are worth a second thread.
inline int64_t grain_of(Rows rows) { return kGrainElements / (rows.width + 1) + 1; }

}  // namespace fovea::cpu
