#pragma once

#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea::cpu {

// The stored types of the CPU's table. Asked where a kernel is entered; inside, everything is one
// of the two.
inline void check_stored(DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) {
    fail(ErrorKind::Internal, "cpu kernel: {} is not computed with; expected fp32 or bf16",
         name_of(dtype));
  }
}

template <class... Arguments>
void check_stored_types(const Arguments&... arguments) {
  (check_stored(arguments.dtype), ...);
}

// Work is handed to a second thread from about 32 KB of floats on: below, waking it costs more than
// it saves.
constexpr int64_t kGrainElements = 8192;

// The least rows that are worth a thread.
inline int64_t grain_of(Rows rows) { return kGrainElements / (rows.width + 1) + 1; }

}  // namespace fovea::cpu
