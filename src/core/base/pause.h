#pragma once

#ifndef __aarch64__
#include <immintrin.h>
#endif

namespace fovea {

// Tells the CPU that the calling thread waits in a loop.
inline void pause_thread() {
#ifdef __aarch64__
  __asm__ volatile("yield");
#else
  _mm_pause();
#endif
}

}  // namespace fovea
