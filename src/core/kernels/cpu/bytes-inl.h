// Vectors of bytes and of 32-bit integers; included once per target.

#if defined(FOVEA_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_BYTES_INL_H_
#undef FOVEA_BYTES_INL_H_
#else
#define FOVEA_BYTES_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

namespace fovea::cpu::HWY_NAMESPACE {

using Wholes = hn::RebindToSigned<Floats>;
using Bytes = hn::Repartition<uint8_t, Floats>;
using WholeVector = hn::Vec<Wholes>;
using ByteVector = hn::Vec<Bytes>;

}  // namespace fovea::cpu::HWY_NAMESPACE
#endif
