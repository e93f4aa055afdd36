// Unpacks blocks of panels (kernels/layout/packed.h) to floats or bf16, for products with the exact
// weights; included once per target.

#if defined(FOVEA_PACKED_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_UNPACK_INL_H_
#undef FOVEA_PACKED_UNPACK_INL_H_
#else
#define FOVEA_PACKED_UNPACK_INL_H_
#endif

#include <type_traits>

#include "base/float_mode.h"
#include "kernels/cpu/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Reads panels of integers as floats, kLanes outputs and four inputs at a time. The operations are
// those of unpack_row(), so the bits are too.
class NumberReader {
 public:
  explicit NumberReader(const PackedMatrix& w)
      : w_(w), format_(block_format(w.format)), scales_(w), panel_size_(panel_bytes(w)) {
    if (is_block_type(w.format)) {
      group_ = format_.group;
    } else {
      group_ = w.group;
      if (w.format == WeightFormat::int4) part_ = w.group;
    }
    part_bytes_ = part_ / kPart * (format_.low + format_.high) * kLineBytes;
    offset_ = format_.table != nullptr ? kTableOffset : format_.offset;
    alignas(16) uint8_t values[16] = {};
    for (int i = 0; format_.table != nullptr && i < 16; ++i)
      values[i] = static_cast<uint8_t>(format_.table[i] + kTableOffset);
    table_ = hn::LoadDup128(Bytes(), values);
  }

  // Calls put(k, weights) for the inputs of a range, which begins at a multiple of 4 and is
  // extended to one at its end, with the weights of the outputs of `panel` from `lane` on.
  template <class Put>
  HWY_INLINE void read(int64_t panel, int64_t lane, Range inputs, const Put& put) const {
    const auto* lines = static_cast<const uint8_t*>(w_.panels) + panel * panel_size_ + 4 * lane;
    for (int64_t k = inputs.begin; k < inputs.end;) {
      const int64_t group = k / group_, end = std::min(inputs.end, (group + 1) * group_);
      Vector scale, minimum = all(0);
      read_scale(panel, group, lane, scale, minimum);
      for (; k < end; k += 4) {
        const int64_t part = k / part_;
        const WordVector numbers = numbers_of(lines + part * part_bytes_, (k - part * part_) / 4);
        put(k, weight<0>(numbers, scale, minimum));
        put(k + 1, weight<1>(numbers, scale, minimum));
        put(k + 2, weight<2>(numbers, scale, minimum));
        put(k + 3, weight<3>(numbers, scale, minimum));
      }
    }
  }

 private:
  HWY_INLINE void read_scale(int64_t panel, int64_t group, int64_t lane, Vector& scale,
                             Vector& minimum) const {
    if (is_block_type(w_.format)) {
      const int64_t block = group / scales_.groups(), first = block * scales_.groups();
      return scales_.read(scales_.block(panel, block, lane), group - first, scale, minimum);
    }
    scale = widen_scales(w_.scales + (panel * groups_of(w_) + group) * kPanelOutputs + lane);
  }

  // Returns the numbers 4 t to 4 t + 3 of a part, in the bytes of a word for each output.
  HWY_INLINE WordVector numbers_of(const uint8_t* part, int64_t t) const {
    const auto bits = [&](int count, int64_t line, int64_t shift) HWY_ATTR {
      const auto* from = reinterpret_cast<const uint32_t*>(part + line * kLineBytes);
      const uint32_t each_byte = 0x01010101u * ((1u << count) - 1);
      return hn::And(hn::ShiftRightSame(hn::Load(Words(), from), static_cast<int>(shift)),
                     hn::Set(Words(), each_byte));
    };
    const int low = format_.low;
    const int64_t half = part_ / 8;  // lines of the low halves of bytes
    WordVector numbers = low == 8   ? bits(8, t, 0)
                         : low == 4 ? bits(4, t % half, t / half * 4)
                                    : bits(2, t / 4, t % 4 * 2);
    if (format_.high == 1) numbers = hn::Or(numbers, above(bits(1, low, t)));
    if (format_.high == 2) numbers = hn::Or(numbers, above(bits(2, low + t / 4, t % 4 * 2)));
    if (format_.table == nullptr) return numbers;
    return hn::BitCast(Words(), hn::TableLookupBytes(table_, hn::BitCast(Bytes(), numbers)));
  }
  HWY_INLINE WordVector above(WordVector bits) const {
    return hn::ShiftLeftSame(bits, format_.low);
  }

  template <int kByte>
  HWY_INLINE Vector weight(WordVector numbers, Vector scale, Vector minimum) const {
    const WordVector number = hn::And(hn::ShiftRight<8 * kByte>(numbers), hn::Set(Words(), 0xff));
    const WholeVector whole = hn::Sub(hn::BitCast(Wholes(), number), hn::Set(Wholes(), offset_));
    return hn::Sub(hn::Mul(scale, hn::ConvertTo(Floats(), whole)), minimum);
  }

  const PackedMatrix& w_;
  const BlockFormat& format_;
  ScaleReader scales_;                 // of block types
  int64_t panel_size_, group_;         // bytes; inputs per scale
  int64_t part_ = kPart, part_bytes_;  // inputs that share lines
  int32_t offset_;
  ByteVector table_;
};

// Like NumberReader::read(), for panels of floats.
template <class Put>
HWY_INLINE void read_floats(const PackedMatrix& w, int64_t panel, int64_t lane, Range inputs,
                            const Put& put) {
  const auto* from = static_cast<const uint8_t*>(w.panels) + panel * panel_bytes(w);
  if (w.format == WeightFormat::f32) {
    const auto* floats = reinterpret_cast<const float*>(from) + lane;
    for (int64_t k = inputs.begin; k < inputs.end; ++k)
      put(k, hn::Load(Floats(), floats + k * kPanelOutputs));
    return;
  }
  const auto* words = reinterpret_cast<const uint32_t*>(from) + lane;
  for (int64_t k = inputs.begin; k < inputs.end; k += 2) {
    const WordVector pairs = hn::Load(Words(), words + k / 2 * kPanelOutputs);
    put(k, upper_of(pairs));
    put(k + 1, lower_of(pairs));
  }
}

// Returns the words of output n, the first of a vector, in a panel of bf16, from input k on.
inline const uint32_t* words_of_panel(const PackedMatrix& w, int64_t n, int64_t k) {
  const auto* panel = static_cast<const uint8_t*>(w.panels) + n / kPanelOutputs * panel_bytes(w);
  return reinterpret_cast<const uint32_t*>(panel) + k / 2 * kPanelOutputs + n % kPanelOutputs;
}

// The elements that unpack() needs in a row and in all rows of its result.
inline int64_t unpacked_stride(Range outputs) { return round_up(outputs.size(), kPanelOutputs); }
inline int64_t unpacked_size(Range inputs, Range outputs) {
  return round_up(inputs.size(), 4) * unpacked_stride(outputs);
}

// unpack() for panels of bf16, which need no rounding.
inline void unpack_halves(const PackedMatrix& w, Range inputs, Range outputs, bf16* to) {
  const hn::Rebind<uint16_t, Floats> halves;
  const int64_t stride = unpacked_stride(outputs);
  for (int64_t n = outputs.begin; n < outputs.end; n += kLanes) {
    const uint32_t* words = words_of_panel(w, n, inputs.begin);
    uint16_t* row = &to[n - outputs.begin].bits;
    for (int64_t k = inputs.begin; k < inputs.end; k += 2) {
      const WordVector pairs = hn::Load(Words(), words);
      hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(pairs)), halves, row);
      hn::StoreU(hn::TruncateTo(halves, pairs), halves, row + stride);
      words += kPanelOutputs;
      row += 2 * stride;
    }
  }
}

// Sets to[i][j] to the weight of input inputs.begin + i and output outputs.begin + j, with the bits
// of unpack_row(), rounded to T: float or bf16. Inputs begin at a multiple of 4, outputs at one of
// kLanes; rows are unpacked_stride() elements apart, and their end is not defined.
template <class T>
void unpack(const PackedMatrix& w, Range inputs, Range outputs, T* to) {
  const FloatMode mode;  // products of bf16 flush denormal numbers, but weights keep them
  const int64_t stride = unpacked_stride(outputs);
  const auto read_all = [&](const auto& read) HWY_ATTR {
    for (int64_t n = outputs.begin; n < outputs.end; n += kLanes) {
      T* column = to + (n - outputs.begin);
      read(n / kPanelOutputs, n % kPanelOutputs, [&](int64_t k, Vector weights) HWY_ATTR {
        T* at = column + (k - inputs.begin) * stride;
        if constexpr (std::is_same_v<T, float>)
          hn::StoreU(weights, Floats(), at);
        else
          hn::StoreU(narrow_half(weights), hn::Rebind<uint16_t, Floats>(), &at->bits);
      });
    }
  };
  if constexpr (std::is_same_v<T, bf16>) {
    if (w.format == WeightFormat::bf16) return unpack_halves(w, inputs, outputs, to);
  }
  if (!has_blocks(w.format)) {
    read_all([&](int64_t panel, int64_t lane, const auto& put)
                 HWY_ATTR { read_floats(w, panel, lane, inputs, put); });
    return;
  }
  const NumberReader reader(w);
  read_all([&](int64_t panel, int64_t lane, const auto& put)
               HWY_ATTR { reader.read(panel, lane, inputs, put); });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
