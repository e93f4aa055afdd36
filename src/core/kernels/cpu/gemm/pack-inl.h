// Copies operands of a product into the order in which the kernels read them. Included once per
// target.

#if defined(FOVEA_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_GEMM_PACK_INL_H_
#undef FOVEA_GEMM_PACK_INL_H_
#else
#define FOVEA_GEMM_PACK_INL_H_
#endif

#include "kernels/cpu/product.h"
#include "kernels/cpu/unpack-inl.h"
#include "kernels/cpu/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Copies words of a matrix in panels of bf16: to[i][column] is word i of inputs `k` of an output.
template <class W>
void copy_panels(const PackedMatrix& w, Range k, Range outputs, float* HWY_RESTRICT to,
                 int64_t words, int64_t width) {
  for (int64_t column = 0; column < width; column += kLanes) {
    const uint32_t* from = words_of_panel(w, outputs.begin + column, k.begin);
    for (int64_t i = 0; i < words; ++i) {
      const WordVector pairs = hn::Load(Words(), from + i * kPanelOutputs);
      hn::Store(hn::BitCast(Floats(), W::kEarlierIsUpper ? pairs : hn::RotateRight<16>(pairs)),
                Floats(), to + i * width + column);
    }
  }
}

// Packs a block of B as pack_transposed() and pack_across() do. A block of a packed matrix [N, K]
// is first unpacked as [K, N], so it is packed in the opposite way.
template <class W>
void pack_block(const Product& p, Range k, Range columns, float* HWY_RESTRICT to, int64_t words,
                int64_t width) {
  using T = typename W::T;
  bool transposed = p.b.transposed;
  if constexpr (W::kDepth == 2) {
    if (p.packed != nullptr && p.packed->format == WeightFormat::bf16 && transposed)
      return copy_panels<W>(*p.packed, k, columns, to, words, width);
  }
  int64_t stride = p.b.stride;
  const T* from = nullptr;
  if (p.packed == nullptr) {
    from = static_cast<const T*>(p.b.data) +
           (transposed ? columns.begin * stride + k.begin : k.begin * stride + columns.begin);
  } else {
    const Range inputs = transposed ? k : columns, outputs = transposed ? columns : k;
    const int64_t floats = ceil_div(unpacked_size(inputs, outputs), 4 / int64_t{sizeof(T)});
    T* room = reinterpret_cast<T*>(scratch(ScratchUse::unpacked, floats));
    unpack(*p.packed, inputs, outputs, room);
    transposed = !transposed;
    stride = unpacked_stride(outputs);
    from = room;
  }
  if (transposed)
    pack_transposed<W>(from, stride, k.size(), columns.size(), to, words, width);
  else
    pack_across<W>(from, stride, k.size(), columns.size(), to, words, width);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
