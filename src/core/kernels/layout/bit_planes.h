#pragma once

#ifdef __aarch64__
#include "kernels/layout/bit_planes_plain.h"
#else
#include "kernels/layout/bit_planes_x86.h"
#endif
