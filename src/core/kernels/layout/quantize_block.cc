#include "kernels/layout/quantize_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"

namespace fovea {
namespace {

using Lanes = float __attribute__((vector_size(32)));
constexpr int kLanes = 8, kMostGroups = 16, kMostParts = 4;

// A group of smaller magnitude is zero in every format: the smallest f16 is 6e-8.
constexpr float kTiny = 1e-12f;

Lanes all(float x) { return Lanes{} + x; }

float sum(Lanes v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

float as_half(float x) { return widen_half(narrow_to_half(x)); }

float inverse_of(float scale) { return std::fabs(scale) < kTiny ? 0 : 1 / scale; }

// Beyond the limits, all integers of a block are exceeded.
int nearest_integer(float x) { return static_cast<int>(std::lrint(std::clamp(x, -1e3f, 1e3f))); }

// The values that numbers stand for, before the scale and the minimum apply.
class Levels {
 public:
  explicit Levels(const BlockFormat& format)
      : least_(static_cast<float>(-format.offset)),
        most_(static_cast<float>((1 << (format.low + format.high)) - 1 - format.offset)),
        table_(format.table) {
    if (table_ == nullptr) return;
    for (int j = 0; j < 15; ++j) middles_[j] = 0.5f * static_cast<float>(table_[j] + table_[j + 1]);
    least_ = table_[0];
    most_ = table_[15];
    gap_ = static_cast<float>(table_[1] - table_[0]);
  }

  float least() const { return least_; }
  float most() const { return most_; }
  float gap() const { return gap_; }  // between the least level and the next one

  Lanes nearest(Lanes y) const {
    if (table_ == nullptr) {
      constexpr float kRound = 0x1.8p23f;  // adding it leaves no fraction, for |y| < 2^22
      const Lanes rounded = (y + kRound) - kRound;
      const Lanes above = rounded < least_ ? all(least_) : rounded;
      return above > most_ ? all(most_) : above;
    }
    Lanes level = all(least_);
    for (int j = 0; j < 15; ++j)
      level = y > middles_[j] ? all(static_cast<float>(table_[j + 1])) : level;
    return level;
  }

  uint8_t number(float level) const {
    if (table_ == nullptr) return static_cast<uint8_t>(level - least_);
    return static_cast<uint8_t>(std::find(table_, table_ + 16, level) - table_);
  }

 private:
  float least_, most_, gap_ = 1;
  const int8_t* table_;
  float middles_[15];
};

// The weights x of a model that share a scale, and how much their errors count.
struct Group {
  Lanes x[kMostParts], w[kMostParts];
  int parts;
  float low, high;  // smallest and largest x
  float sum_w, sum_wx;
};

// Sums over a group, weighted by w: of the nearest levels, their squares, and level times x.
struct Sums {
  float l, ll, lx;
};

// x is near scale * level - minimum. `gain`: by how much this reduces the sum of w x^2.
struct Fit {
  float scale = 0, minimum = 0, gain = -1;
};

enum class Minimum { none, not_negative, any };

Minimum minimum_of(const BlockFormat& format) {
  if (!has_minimum(format.scales)) return Minimum::none;
  return format.scales == BlockScales::half_minimum ? Minimum::any : Minimum::not_negative;
}

Sums sums_of(const Group& g, const Levels& levels, float inverse, float minimum) {
  Lanes l{}, ll{}, lx{};
  for (int p = 0; p < g.parts; ++p) {
    const Lanes level = levels.nearest((g.x[p] + minimum) * inverse), weighted = g.w[p] * level;
    l += weighted;
    ll += weighted * level;
    lx += weighted * g.x[p];
  }
  return {sum(l), sum(ll), sum(lx)};
}

// Returns the sum of w (x - value)^2 with the nearest levels.
float error_of(const Group& g, const Levels& levels, float scale, float minimum) {
  const float inverse = inverse_of(scale);
  Lanes error{};
  for (int p = 0; p < g.parts; ++p) {
    const Lanes level = levels.nearest((g.x[p] + minimum) * inverse);
    const Lanes difference = level * scale - minimum - g.x[p];
    error += g.w[p] * difference * difference;
  }
  return sum(error);
}

// Returns the scale and the minimum with the least squared error for levels with these sums.
Fit least_squares(const Group& g, const Sums& s, Minimum kind) {
  const float determinant = g.sum_w * s.ll - s.l * s.l;
  if (kind != Minimum::none && determinant > 1e-6f * g.sum_w * s.ll) {
    const float scale = (g.sum_w * s.lx - s.l * g.sum_wx) / determinant;
    const float minimum = (s.l * s.lx - s.ll * g.sum_wx) / determinant;
    if (kind == Minimum::any || minimum >= 0)
      return {scale, minimum, scale * s.lx - minimum * g.sum_wx};
  }
  return s.ll > 0 ? Fit{s.lx / s.ll, 0, s.lx * s.lx / s.ll} : Fit{};
}

// Searches the scale and the minimum of a group: the extreme values map near the extreme levels,
// each choice of levels has its least squares, and the best one is improved in turns.
Fit best_fit(const Group& g, const Levels& levels, Minimum kind) {
  Fit best;
  const auto consider = [&](float inverse, float minimum) {
    const Fit next = least_squares(g, sums_of(g, levels, inverse, minimum), kind);
    if (next.gain > best.gain) best = next;
  };
  constexpr int kSteps = 15;
  if (kind == Minimum::none) {
    const float extreme = -g.low > g.high ? g.low : g.high;
    if (std::fabs(extreme) < kTiny) return {};
    for (int i = -kSteps; i <= kSteps; ++i)
      consider((levels.least() + 0.1f * static_cast<float>(i) * levels.gap()) / extreme, 0);
  } else {
    const float minimum = kind == Minimum::any ? -g.low : std::max(-g.low, 0.0f);
    const float range = g.high + minimum;
    if (range < kTiny) return {0, minimum, 0};
    for (int i = -kSteps; i <= kSteps; ++i)
      consider((levels.most() + 0.1f * static_cast<float>(i)) / range, minimum);
  }
  for (int turn = 0; turn < 3; ++turn) consider(inverse_of(best.scale), best.minimum);
  return best;
}

// The scales of a block as stored, and the error of the block with the nearest levels.
struct Scales {
  float scale = 0, minimum = 0;  // representable in f16
  int scales[kMostGroups], minimums[kMostGroups];
  float error = std::numeric_limits<float>::infinity();
};

class BlockSearch {
 public:
  BlockSearch(const BlockFormat& format, const float* x, const float* weights)
      : levels_(format), kind_(minimum_of(format)), count_(format.block / format.group) {
    double squares = 0;
    for (int64_t i = 0; i < format.block; ++i) squares += static_cast<double>(x[i]) * x[i];
    const auto base = static_cast<float>(2 * squares / static_cast<double>(format.block));
    for (int64_t g = 0; g < count_; ++g) {
      const int64_t first = g * format.group;
      read_group(groups_[g], format.group, x + first,
                 weights == nullptr ? weights : weights + first, base);
      fits_[g] = best_fit(groups_[g], levels_, kind_);
    }
  }

  // The scales of a format without integers for its groups: it has one group.
  Scales single() const {
    Scales s;
    s.scale = as_half(fits_[0].scale);
    s.minimum = as_half(fits_[0].minimum);
    s.scales[0] = s.minimums[0] = 1;
    return s;
  }

  // The scales of a format whose groups have integers from `least` to `most` as scales, and from 0
  // to `most` as minimums.
  Scales with_integers(int least, int most) const {
    float extreme = 0, minimum = 0;
    for (int64_t g = 0; g < count_; ++g) {
      if (std::fabs(fits_[g].scale) > std::fabs(extreme)) extreme = fits_[g].scale;
      minimum = std::max(minimum, fits_[g].minimum);
    }
    const auto limit = static_cast<float>(least < 0 ? least : most);
    Scales best = integers_for(extreme / limit, minimum / limit, least, most);
    for (int turn = 0; turn < 3; ++turn) {
      const auto [scale, other] = least_squares_of_block(best);
      const Scales next = integers_for(scale, other, least, most);
      if (!(next.error < best.error)) break;
      best = next;
    }
    return best;
  }

  void write(const Scales& s, WeightBlock& to) const {
    to.scale = narrow_to_half(s.scale);
    to.minimum = narrow_to_half(s.minimum);
    uint8_t* number = to.numbers;
    for (int64_t g = 0; g < count_; ++g) {
      to.scales[g] = static_cast<int8_t>(s.scales[g]);
      to.minimums[g] = static_cast<int8_t>(s.minimums[g]);
      const float minimum = s.minimum * static_cast<float>(s.minimums[g]);
      const float inverse = inverse_of(s.scale * static_cast<float>(s.scales[g]));
      for (int p = 0; p < groups_[g].parts; ++p) {
        const Lanes level = levels_.nearest((groups_[g].x[p] + minimum) * inverse);
        for (int i = 0; i < kLanes; ++i) *number++ = levels_.number(level[i]);
      }
    }
  }

 private:
  static void read_group(Group& g, int64_t count, const float* x, const float* weights,
                         float base) {
    Lanes w{}, wx{};
    g.parts = static_cast<int>(count) / kLanes;
    for (int p = 0; p < g.parts; ++p) {
      for (int i = 0; i < kLanes; ++i, ++x) {
        g.x[p][i] = *x;
        g.w[p][i] = std::sqrt(*x * *x + base) * (weights == nullptr ? 1 : *weights++);
      }
      w += g.w[p];
      wx += g.w[p] * g.x[p];
    }
    g.low = *std::min_element(x - count, x);
    g.high = *std::max_element(x - count, x);
    g.sum_w = sum(w);
    g.sum_wx = sum(wx);
  }

  // Rounds the scales of the block to f16, and chooses the integers of each group among those next
  // to the quotients of its own scale and minimum.
  Scales integers_for(float scale, float minimum, int least, int most) const {
    // Rounds magnitudes up, since the integers can make a scale smaller but not larger. This
    // matters for small scales, of which f16 has few.
    const auto representable = [](float x) {
      const uint16_t half = narrow_to_half(x);
      return widen_half(std::fabs(widen_half(half)) < std::fabs(x) ? half + 1 : half);
    };
    Scales s;
    s.scale = representable(scale);
    s.minimum = representable(minimum);
    s.error = 0;
    const float inverse = inverse_of(s.scale), inverse_minimum = inverse_of(s.minimum);
    const int around = kind_ == Minimum::none ? 0 : 1;
    for (int64_t g = 0; g < count_; ++g) {
      const int scale_near = nearest_integer(fits_[g].scale * inverse);
      const int minimum_near = nearest_integer(fits_[g].minimum * inverse_minimum);
      float best = std::numeric_limits<float>::infinity();
      for (int a = scale_near - 1; a <= scale_near + 1; ++a) {
        for (int b = minimum_near - around; b <= minimum_near + around; ++b) {
          const int own = std::clamp(a, least, most), own_minimum = std::clamp(b, 0, most);
          const float error = error_of(groups_[g], levels_, s.scale * static_cast<float>(own),
                                       s.minimum * static_cast<float>(own_minimum));
          if (!(error < best)) continue;
          best = error;
          s.scales[g] = own;
          s.minimums[g] = own_minimum;
        }
      }
      s.error += best;
    }
    return s;
  }

  // Returns the scale and the minimum of the block with the least squared error, given its integers
  // and levels: x is near scale * a - minimum * b, where a = integer * level and b is an integer.
  std::pair<float, float> least_squares_of_block(const Scales& s) const {
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int64_t g = 0; g < count_; ++g) {
      const auto a = static_cast<float>(s.scales[g]), b = static_cast<float>(s.minimums[g]);
      const Sums sums = sums_of(groups_[g], levels_, inverse_of(s.scale * a), s.minimum * b);
      aa += static_cast<double>(a * a) * sums.ll;
      ab += static_cast<double>(a * b) * sums.l;
      bb += static_cast<double>(b * b) * groups_[g].sum_w;
      ax += static_cast<double>(a) * sums.lx;
      bx += static_cast<double>(b) * groups_[g].sum_wx;
    }
    if (kind_ == Minimum::none || bb == 0)
      return {aa > 0 ? static_cast<float>(ax / aa) : s.scale, s.minimum};
    const double determinant = aa * bb - ab * ab;
    const double minimum = ab * ax - aa * bx;
    if (!(determinant > 1e-9 * aa * bb) || minimum < 0) return {s.scale, s.minimum};
    return {static_cast<float>((ax * bb - ab * bx) / determinant),
            static_cast<float>(minimum / determinant)};
  }

  Levels levels_;
  Minimum kind_;
  int64_t count_;
  Group groups_[kMostGroups];
  Fit fits_[kMostGroups];
};

// A block of MXFP4: its scale is a power of two, and its table has magnitudes and then their
// negatives. Three scales are compared, which map the largest magnitude to a number below 8, 16 or
// 32; the largest level is 12.
class PowerSearch {
 public:
  PowerSearch(const BlockFormat& format, const float* x, const float* weights)
      : format_(format), x_(x) {
    double squares = 0;
    float most = 0;
    for (int64_t i = 0; i < format.block; ++i) {
      squares += static_cast<double>(x[i]) * x[i];
      most = std::max(most, std::fabs(x[i]));
    }
    const auto base = static_cast<float>(2 * squares / static_cast<double>(format.block));
    if (most < kTiny) return;
    int power = 0;
    std::frexp(most, &power);  // most < 2^power
    float least = std::numeric_limits<float>::infinity();
    for (int p = power - 5; p <= power - 3; ++p) {
      float error = 0;
      const float scale = std::ldexp(1.0f, p);
      for (int64_t i = 0; i < format.block; ++i) {
        const float difference = std::fabs(x[i]) - scale * nearest(std::fabs(x[i]) / scale).value;
        const float weight = weights == nullptr ? 1 : weights[i];
        error += weight * std::sqrt(x[i] * x[i] + base) * difference * difference;
      }
      if (!(error < least)) continue;
      least = error;
      scale_ = scale;
    }
  }

  void write(WeightBlock& to) const {
    to.scale = narrow(scale_).bits;
    for (int64_t i = 0; i < format_.block; ++i) {
      const int number = scale_ == 0 ? 0 : nearest(std::fabs(x_[i]) / scale_).number;
      to.numbers[i] = static_cast<uint8_t>(x_[i] < 0 && number > 0 ? number + 8 : number);
    }
  }

 private:
  struct Level {
    int number;
    float value;
  };
  Level nearest(float y) const {
    int number = 0;
    while (number < 7 &&
           2 * y > static_cast<float>(format_.table[number] + format_.table[number + 1]))
      ++number;
    return {number, static_cast<float>(format_.table[number])};
  }

  const BlockFormat& format_;
  const float* x_;
  float scale_ = 0;
};

}  // namespace

void quantize_block(const BlockFormat& format, const float* x, const float* weights,
                    WeightBlock& to) {
  if (format.scales == BlockScales::bfloat) return PowerSearch(format, x, weights).write(to);
  const BlockSearch search(format, x, weights);
  const bool eight_bits = format.high == 2;  // Q6_K; the other types have signed scales of 6 bits
  switch (format.scales) {
    case BlockScales::bytes:
      return search.write(search.with_integers(eight_bits ? -128 : -32, eight_bits ? 127 : 31), to);
    case BlockScales::bytes_minimum: return search.write(search.with_integers(0, 63), to);
    case BlockScales::nibbles_minimum: return search.write(search.with_integers(0, 15), to);
    default: return search.write(search.single(), to);
  }
}

}  // namespace fovea
