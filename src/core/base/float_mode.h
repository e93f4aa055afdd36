#pragma once

#ifdef __aarch64__
#include "base/float_mode_arm.h"
#else
#include "base/float_mode_x86.h"
#endif

namespace fovea {

// Sets the calling thread's mode during its lifetime and then restores the previous one. Each
// public function begins with one, so that a caller's mode changes no result. Reading the mode
// costs a few cycles; it is written only if it differs. The "memory" clobber prevents the compiler
// from moving loads and stores, and so the arithmetic between them, across the change.
class FloatMode {
 public:
  explicit FloatMode(FloatModeBits wanted = kDefaultFloatMode) : found_(current()) {
    changed_ = found_ != wanted;
    if (changed_) write_float_mode(wanted);
  }
  ~FloatMode() {
    if (changed_) write_float_mode(found_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

  static FloatModeBits current() { return read_float_mode(); }

 private:
  FloatModeBits found_;
  bool changed_;
};

}  // namespace fovea
