// Tiles of a product with panels of block types (kernels/layout/blocks.h); included once per
// target.

#if defined(FOVEA_PACKED_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_BLOCKS_INL_H_
#undef FOVEA_PACKED_BLOCKS_INL_H_
#else
#define FOVEA_PACKED_BLOCKS_INL_H_
#endif

#include "kernels/cpu/whole-inl.h"
#include "kernels/layout/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The part of a BlockFormat that the compiler knows: the bits of numbers, the weights per scale,
// and whether a table replaces the numbers.
struct Planes {
  int low, high, group;
  bool table;

  constexpr int lines() const { return low + high; }  // for 32 weights
};

// The weights that share lines of a panel.
constexpr int64_t kPart = 32;
constexpr int kQuads = 8;  // vectors of 4 weights in a part

// Moves the `kBits` bits of each byte that begin at kFrom to kTo; the other bits become 0.
template <int kBits, int kFrom, int kTo>
HWY_INLINE ByteVector moved_bits(ByteVector v) {
  const hn::Repartition<uint16_t, Floats> pairs;
  if constexpr (kFrom > kTo)
    v = hn::BitCast(Bytes(), hn::ShiftRight<kFrom - kTo>(hn::BitCast(pairs, v)));
  if constexpr (kFrom < kTo)
    v = hn::BitCast(Bytes(), hn::ShiftLeft<kTo - kFrom>(hn::BitCast(pairs, v)));
  return hn::And(v, hn::Set(Bytes(), ((1 << kBits) - 1) << kTo));
}

// Returns the weights 4 t to 4 t + 3 of a part without their sign: numbers, or values of the table
// plus kTableOffset. `part` is the vector's index in the first line.
template <Planes kPlanes, int t>
HWY_INLINE ByteVector weights_of(const uint8_t* part, ByteVector table) {
  constexpr int kLow = kPlanes.low;
  constexpr int kLine = kLow == 4 ? t % 4 : t / 4, kFrom = kLow == 4 ? t / 4 * 4 : t % 4 * 2;
  ByteVector numbers = moved_bits<kLow, kFrom, 0>(hn::Load(Bytes(), part + kLine * kLineBytes));
  if constexpr (kPlanes.high == 1) {
    const ByteVector bits = hn::Load(Bytes(), part + kLow * kLineBytes);
    numbers = hn::Or(numbers, moved_bits<1, t, kLow>(bits));
  }
  if constexpr (kPlanes.high == 2) {
    const ByteVector bits = hn::Load(Bytes(), part + (kLow + t / 4) * kLineBytes);
    numbers = hn::Or(numbers, moved_bits<2, t % 4 * 2, kLow>(bits));
  }
  if constexpr (kPlanes.table) numbers = hn::TableLookupBytes(table, numbers);
  return numbers;
}

// Reads the scales and minimums of groups as floats.
class ScaleReader {
 public:
  explicit ScaleReader(const PackedMatrix& w) {
    const BlockFormat& format = block_format(w.format);
    scales_ = format.scales;
    groups_ = format.block / format.group;
    record_ = record_bytes(format);
    panel_ = w.width / format.block * record_;
    records_ = reinterpret_cast<const uint8_t*>(w.scales);
  }
  int64_t groups() const { return groups_; }  // of a block

  // A block of kLanes outputs from `lane`: its scales, and its minimums if the type has them.
  struct Block {
    Vector scale, minimum;
    const uint8_t* bytes;  // those of the first group
  };
  HWY_INLINE Block block(int64_t panel, int64_t index, int64_t lane) const {
    const uint8_t* record = records_ + panel * panel_ + index * record_;
    const auto* halves = reinterpret_cast<const uint16_t*>(record) + lane;
    const bool minimums = has_minimum(scales_);
    Block block = {all(0), all(0), record + (minimums ? 4 : 2) * kPanelOutputs + lane};
    if (scales_ == BlockScales::bfloat) {
      const auto bits = hn::LoadU(hn::Rebind<uint16_t, Floats>(), halves);
      block.scale = hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Words(), bits)));
      return block;
    }
    block.scale = widen_scales(halves);
    if (minimums) block.minimum = widen_scales(halves + kPanelOutputs);
    return block;
  }
  // Sets the scales and minimums of group g of a block.
  HWY_INLINE void read(const Block& block, int64_t g, Vector& scale, Vector& minimum) const {
    const uint8_t* bytes = block.bytes + g * kPanelOutputs;
    scale = block.scale;
    minimum = block.minimum;
    switch (scales_) {
      case BlockScales::bytes: scale = hn::Mul(scale, integers(bytes)); break;
      case BlockScales::bytes_minimum:
        scale = hn::Mul(scale, integers(bytes));
        minimum = hn::Mul(minimum, integers(bytes + groups_ * kPanelOutputs));
        break;
      case BlockScales::nibbles_minimum: {
        const WordVector both =
            hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<uint8_t, Floats>(), bytes));
        const WordVector low = hn::And(both, hn::Set(Words(), 15)), high = hn::ShiftRight<4>(both);
        scale = hn::Mul(scale, hn::ConvertTo(Floats(), hn::BitCast(Wholes(), low)));
        minimum = hn::Mul(minimum, hn::ConvertTo(Floats(), hn::BitCast(Wholes(), high)));
        break;
      }
      default: break;
    }
  }

 private:
  static HWY_INLINE Vector integers(const uint8_t* at) {
    const hn::Rebind<int8_t, Floats> bytes;
    const auto narrow = hn::LoadU(bytes, reinterpret_cast<const int8_t*>(at));
    return hn::ConvertTo(Floats(), hn::PromoteTo(Wholes(), narrow));
  }

  BlockScales scales_;
  int64_t groups_, record_, panel_;  // groups per block; bytes
  const uint8_t* records_;
};

// The integer sums of a group, and how they are added to the floats in `carried`. All tiles use the
// same operations in the same order.
template <int kRows, int kVectors>
struct GroupSums {
  WholeVector at[kRows][kVectors];

  // `corrections` [kRows], or null: a type with minimums, whose numbers have no offset.
  template <class Dot>
  HWY_INLINE void start(const int32_t* corrections) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const int32_t first = corrections == nullptr ? 0 : Dot::start(corrections[r]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) at[r][v] = hn::Set(Wholes(), first);
    }
  }
  // Returns `sum` plus that of row r and vector v. `scales` and `totals` [kRows] are those of the
  // activations; `totals` is null if there are no minimums.
  HWY_INLINE Vector added_to(Vector sum, int r, int v, Vector scale, Vector minimum,
                             const float* scales, const float* totals) const {
    const Vector both = hn::Mul(scale, all(scales[r]));
    sum = hn::MulAdd(both, hn::ConvertTo(Floats(), at[r][v]), sum);
    return totals == nullptr ? sum : hn::NegMulAdd(minimum, all(totals[r]), sum);
  }
  // Adds all rows of vector v to `total`.
  HWY_INLINE void add_to(Sums<kRows, kVectors>& total, int v, Vector scale, Vector minimum,
                         const float* scales, const float* totals) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      total.at[r][v] = added_to(total.at[r][v], r, v, scale, minimum, scales, totals);
  }
  // Adds all rows of vector v to `carried`, where a row takes `stride`.
  HWY_INLINE void finish(int v, Vector scale, Vector minimum, const float* scales,
                         const float* totals, float* carried, int64_t stride) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* to = carried + r * stride + v * kLanes;
      const Vector sum = hn::Load(Floats(), to);
      hn::Store(added_to(sum, r, v, scale, minimum, scales, totals), Floats(), to);
    }
  }
};

// The activations of a tile: advances by groups of the weights.
template <int kRows>
struct TileInputs {
  const int8_t* q;
  const float *scales, *totals;
  const int32_t* corrections;

  // From the group of weights `first` on, which has `group` weights.
  TileInputs(const PackedJob& job, Range rows, int64_t first, int64_t group) {
    const int64_t k = first * group, groups = job.weight.width / group;
    q = job.bytes + rows.begin * job.stride + k * kRows;
    scales = job.scales + rows.begin * job.groups + k / kPart * kRows;
    const int64_t at = rows.begin * groups + first * kRows;
    totals = job.totals == nullptr ? nullptr : job.totals + at;
    corrections = job.totals != nullptr ? nullptr : job.corrections + at;
  }
  HWY_INLINE void next() {
    if (totals != nullptr)
      totals += kRows;
    else
      corrections += kRows;
  }
};

// Tiles of few rows, which unpack weights in registers.
template <Planes kPlanes, class Dot>
struct BlockTiles {
  static constexpr int kMostTogether = kLanes == 16 ? 5 : 4;
  static constexpr int kMostRows = WholeTiles::kMostRows;
  static constexpr int panels(int rows) {
    return WholeTiles::panels(rows <= kMostTogether ? rows : kMostRows);
  }
  static constexpr int64_t kBlock = WholeTiles::kBlock;
  static constexpr int64_t kPanelBytes = kPlanes.lines() * kLineBytes / kPart;

  // Adds the products of weights 4 t to 4 t + 3 of a part.
  template <int t, int kRows, int kVectors>
  static HWY_INLINE void add(GroupSums<kRows, kVectors>& sums, const uint8_t* const* parts,
                             ByteVector table, const int8_t* q) {
    typename Dot::Prepared w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const uint8_t* part = parts[v / kPanelVectors] + v % kPanelVectors * kLanes * 4;
      w[v] = Dot::prepared(weights_of<kPlanes, t>(part, table));
    }
    add_four<Dot>(sums.at, w, q + t * kRows * 4);
  }
  template <int kFirst, int kRows, int kVectors>
  static HWY_INLINE void add_group(GroupSums<kRows, kVectors>& sums, const uint8_t* const* parts,
                                   ByteVector table, const int8_t* q) {
    add<kFirst>(sums, parts, table, q);
    if constexpr (kPlanes.group == kPart) {  // in pairs that read the same line
      add<kFirst + 4>(sums, parts, table, q);
      add<kFirst + 1>(sums, parts, table, q);
      add<kFirst + 5>(sums, parts, table, q);
      add<kFirst + 2>(sums, parts, table, q);
      add<kFirst + 6>(sums, parts, table, q);
      add<kFirst + 3>(sums, parts, table, q);
      add<kFirst + 7>(sums, parts, table, q);
    } else {
      add<kFirst + 1>(sums, parts, table, q);
      add<kFirst + 2>(sums, parts, table, q);
      add<kFirst + 3>(sums, parts, table, q);
    }
  }

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* carried, const Ahead& ahead) {
    WholeTiles::multiply_by<BlockTiles, kRows, kPanels>(job, rows, panel, k, carried, ahead);
  }
  template <int kRows, int kPanels>
  static HWY_INLINE void multiply_together(const PackedJob& job, Range rows, int64_t panel, Range k,
                                           float* carried, int64_t stride, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors, kGroups = kPart / kPlanes.group;
    constexpr int kPartBytes = kPlanes.lines() * kLineBytes;
    // Few sums stay in registers.
    constexpr bool kInRegisters = kRows * kVectors <= (kLanes == 16 ? 8 : 4);
    const ScaleReader reader(job.weight);
    const ByteVector table = table_of(job.weight.format);
    TileInputs<kRows> in(job, rows, k.begin / kPlanes.group, kPlanes.group);
    const uint8_t* parts[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) parts[p] = job.panel(panel + p) + k.begin * kPanelBytes;
    Sums<kRows, kVectors> total;
    if constexpr (kInRegisters)
      total.load(carried, k.begin == 0, stride);
    else if (k.begin == 0)
      zero_sums(carried, stride, kRows, kVectors);
    typename ScaleReader::Block blocks[kVectors];
    const auto group = [&]<int kGroup>(int64_t g) HWY_ATTR __attribute__((always_inline)) {
      GroupSums<kRows, kVectors> sums;
      sums.template start<Dot>(in.corrections);
      add_group<kGroup * kPlanes.group / 4>(sums, parts, table, in.q);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        Vector scale, minimum;
        reader.read(blocks[v], g, scale, minimum);
        if constexpr (kInRegisters)
          sums.add_to(total, v, scale, minimum, in.scales, in.totals);
        else
          sums.finish(v, scale, minimum, in.scales, in.totals, carried, stride);
      }
      in.next();
    };
    const int64_t block_parts = reader.groups() / kGroups;
    int64_t ahead_line = 0, part = k.begin / kPart;
    while (part < k.end / kPart) {
      const int64_t block = part / block_parts, first = block * block_parts;
      const int64_t end = std::min(k.end / kPart, first + block_parts);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        blocks[v] = reader.block(panel + v / kPanelVectors, block, v % kPanelVectors * kLanes);
      for (; part < end; ++part, ahead_line += kPlanes.lines()) {
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p)
          for (int line = 0; line < kPlanes.lines(); ++line) ahead.ask(p, ahead_line + line);
        group.template operator()<0>((part - first) * kGroups);
        if constexpr (kGroups == 2) group.template operator()<1>((part - first) * kGroups + 1);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) parts[p] += kPartBytes;
        in.q += kPart * kRows;
        in.scales += kRows;
      }
    }
    if constexpr (kInRegisters) total.store(carried, stride);
  }

  static HWY_INLINE ByteVector table_of(WeightFormat format) {
    if (!kPlanes.table) return hn::Zero(Bytes());
    uint8_t values[16];
    for (int i = 0; i < 16; ++i)
      values[i] = static_cast<uint8_t>(block_format(format).table[i] + kTableOffset);
    return hn::LoadDup128(Bytes(), values);
  }
};

// Tiles of unpacked blocks of panels: bytes [K/4][16][4] without sign, with scales and minimums as
// floats. The registers hold the integer sums of a group and, with AVX-512, the sums of floats.
template <class Dot>
struct ByteBlockTiles {
  static constexpr int kMostRows = 4;
  static constexpr int panels(int rows) { return kLanes == 16 ? 3 : WholeTiles::panels(rows); }
  static constexpr int64_t kBlock = WholeTiles::kBlock;
  static constexpr int64_t kPanelBytes = kPanelOutputs;
  static constexpr int64_t kPanelScales = kBlock;  // 16 outputs, at least 16 weights per scale

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* carried, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    const int64_t size = block_format(job.weight.format).group, first = k.begin / size;
    TileInputs<kRows> in(job, rows, first, size);
    const uint8_t* w = job.panel(panel);
    const float* scales = job.block_scales;
    int64_t line = 0;
    Sums<kRows, kVectors> total;
    total.load(carried, k.begin == 0);
    for (int64_t g = first; g < k.end / size; ++g, scales += kPanelOutputs) {
      GroupSums<kRows, kVectors> sums;
      sums.template start<Dot>(in.corrections);
      for (int64_t end = line + size / 4; line < end; in.q += 16 * kRows) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i, ++line, w += kLineBytes) {
#pragma GCC unroll 4
          for (int p = 0; p < kPanels; ++p) ahead.ask(p, line);
          add(sums, w, job.panel_size, in.q + i * 4 * kRows);
        }
      }
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const int64_t at = v / kPanelVectors * kPanelScales + v % kPanelVectors * kLanes;
        const Vector scale = hn::Load(Floats(), scales + at);
        const Vector minimum =
            in.totals == nullptr
                ? all(0)
                : hn::Load(Floats(), scales + (job.block_minimums - job.block_scales) + at);
        sums.add_to(total, v, scale, minimum, in.scales, in.totals);
      }
      in.next();
      if ((g + 1) * size % kPart == 0) in.scales += kRows;
    }
    total.store(carried);
  }

 private:
  template <int kRows, int kVectors>
  static HWY_INLINE void add(GroupSums<kRows, kVectors>& sums, const uint8_t* line,
                             int64_t panel_size, const int8_t* q) {
    typename Dot::Prepared w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const uint8_t* from = line + v / kPanelVectors * panel_size;
      w[v] = Dot::prepared(hn::Load(Bytes(), from + v % kPanelVectors * kLanes * 4));
    }
    add_four<Dot>(sums.at, w, q);
  }
};

// Tiles of many rows: blocks of panels are unpacked to bytes once for all tiles.
template <Planes kPlanes, class Dot>
struct UnpackedTiles {
  using Wide = ByteBlockTiles<Dot>;
  static constexpr bool kOnlyWide = true;
  static constexpr int kMostRows = Wide::kMostRows;
  static constexpr int panels(int rows) { return Wide::panels(rows); }
  static constexpr int64_t kBlock = Wide::kBlock;
  static constexpr int64_t kPanelBytes = BlockTiles<kPlanes, Dot>::kPanelBytes;
  static bool widens(int64_t) { return true; }

  static PackedJob widened(const PackedJob& job, int64_t panel, int64_t panels, Range k) {
    constexpr int64_t kPanelFloats = kBlock * kPanelOutputs / 4, kMostPanels = 4;
    float* room = scratch(ScratchUse::packed_b, kMostPanels * (kPanelFloats + 2 * kBlock));
    PackedJob wide = job;
    wide.weight.panels = room;
    wide.panel_size = kPanelFloats * 4;
    wide.first_k = k.begin;
    float* scales = room + kMostPanels * kPanelFloats;
    float* minimums = scales + kMostPanels * kBlock;
    wide.block_scales = scales;
    wide.block_minimums = minimums;
    const ScaleReader reader(job.weight);
    const ByteVector table = BlockTiles<kPlanes, Dot>::table_of(job.weight.format);
    for (int64_t p = 0; p < panels; ++p, scales += kBlock, minimums += kBlock) {
      const uint8_t* part = job.panel(panel + p) + k.begin * kPanelBytes;
      auto* to = reinterpret_cast<uint8_t*>(room + p * kPanelFloats);
      for (int64_t i = 0; i < k.size(); i += kPart) {
        unpack_part(part, table, to, std::make_integer_sequence<int, kQuads>());
        part += kPart * kPanelBytes;
        to += kQuads * kLineBytes;
      }
      float *scale_at = scales, *minimum_at = minimums;
      for (int64_t g = k.begin / kPlanes.group; g < k.end / kPlanes.group; ++g) {
        for (int64_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
          Vector scale, minimum;
          const int64_t block = g / reader.groups();
          reader.read(reader.block(panel + p, block, lane), g - block * reader.groups(), scale,
                      minimum);
          hn::Store(scale, Floats(), scale_at + lane);
          hn::Store(minimum, Floats(), minimum_at + lane);
        }
        scale_at += kPanelOutputs;
        minimum_at += kPanelOutputs;
      }
    }
    return wide;
  }

 private:
  template <int... t>
  static HWY_INLINE void unpack_part(const uint8_t* part, ByteVector table, uint8_t* to,
                                     std::integer_sequence<int, t...>) {
    for (int64_t at = 0; at < kLineBytes; at += kLanes * 4) {
      (hn::Store(weights_of<kPlanes, t>(part + at, table), Bytes(), to + t * kLineBytes + at), ...);
    }
  }
};

// Rounds `parts` of row `row` of a tile of `rows` rows, in groups of kPart activations; x begins
// with the first part. Sets the corrections, or the totals if they are not null, of the groups of
// weights.
template <int64_t kGroup>
HWY_INLINE void round_block_row(const float* x, Range parts, int32_t offset, int64_t row,
                                int64_t rows, int8_t* q, float* scales, int32_t* corrections,
                                float* totals) {
  constexpr int64_t kSums = kPart / kGroup;
  int8_t whole[kPart];
  for (int64_t part = parts.begin; part < parts.end; ++part, x += kPart) {
    int32_t sums[kSums];
    const float scale = round_group<kPart>(x, whole, sums);
    scales[part * rows + row] = scale;
    for (int64_t s = 0; s < kSums; ++s) {
      const int64_t at = (part * kSums + s) * rows + row;
      if (totals != nullptr)
        totals[at] = scale * static_cast<float>(sums[s]);
      else
        corrections[at] = -offset * sums[s];
    }
    put_fours<kPart>(whole, rows, q + part * kPart * rows + row * 4);
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
