// Steps of optimisers.

#include <cmath>

#include "fovea/core/random.h"
#include "kernels/layout/packed_moments.h"
#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void adamw(Out weight, Out m, Out v, In gradient, const AdamW& step, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double w = get({weight.data, weight.dtype}, i);
    const double g = get(gradient, i) * step.gradient_scale;
    const double first = step.beta1 * get({m.data, m.dtype}, i) + (1.0 - step.beta1) * g;
    const double second = step.beta2 * get({v.data, v.dtype}, i) + (1.0 - step.beta2) * g * g;
    const double direction =
        first / step.correction1 / (std::sqrt(second / step.correction2) + step.epsilon);
    put(weight, i, w - step.rate * (direction + static_cast<double>(step.decay) * w));
    put(m, i, first);
    put(v, i, second);
  }
}

namespace {

// The elements [begin, end) of one block.
struct Block {
  int64_t begin, end;
  float m[kMomentBlock], root[kMomentBlock];  // root = sqrt(v)
};

void load(Block& block, const PackedMoments& moments) {
  const int64_t at = block.begin / kMomentBlock;
  const auto* m = static_cast<const uint8_t*>(moments.m.data);
  const auto* v = static_cast<const uint8_t*>(moments.v.data);
  const float largest_m = static_cast<const float*>(moments.largest_m.data)[at];
  const float largest_v = static_cast<const float*>(moments.largest_v.data)[at];
  for (int64_t i = block.begin; i < block.end; ++i) {
    const float size = MCode::value(m[i] & 0x7f) * largest_m;
    block.m[i - block.begin] = m[i] >= 0x80 ? -size : size;
    block.root[i - block.begin] = VCode::value(v[i]) * largest_v;
  }
}

void store(const Block& block, const PackedMoments& moments) {
  const int64_t at = block.begin / kMomentBlock, count = block.end - block.begin;
  float largest_m = 0, largest_v = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest_m = std::max(largest_m, std::abs(block.m[i]));
    largest_v = std::max(largest_v, block.root[i]);
  }
  static_cast<float*>(moments.largest_m.data)[at] = largest_m;
  static_cast<float*>(moments.largest_v.data)[at] = largest_v;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = block.begin + i;
    const uint32_t word = philox(moments.seed, Stream::moments, moments.parameter,
                                 moment_counter(moments.step, index))[index % 4];
    const float m = largest_m > 0 ? std::abs(block.m[i]) / largest_m : 0;
    const float v = largest_v > 0 ? block.root[i] / largest_v : 0;
    const int32_t sign = std::signbit(block.m[i]) ? 0x80 : 0;
    static_cast<uint8_t*>(moments.m.data)[index] =
        static_cast<uint8_t>(sign | MCode::of(m, word & 0xffff));
    static_cast<uint8_t*>(moments.v.data)[index] =
        static_cast<uint8_t>(std::max(VCode::of(v, word >> 16), v > 0 ? 1 : 0));
  }
}

}  // namespace

void packed_adamw(Out weight, const PackedMoments& moments, In gradient, const AdamW& step,
                  int64_t size) {
  for (int64_t begin = 0; begin < size; begin += kMomentBlock) {
    Block block{.begin = begin, .end = std::min(begin + kMomentBlock, size), .m = {}, .root = {}};
    load(block, moments);
    float v[kMomentBlock];
    for (int64_t i = 0; i < kMomentBlock; ++i) v[i] = block.root[i] * block.root[i];
    adamw(static_cast<float*>(weight.data) + begin, block.m, v,
          static_cast<const float*>(gradient.data) + begin, step, block.end - begin);
    for (int64_t i = 0; i < kMomentBlock; ++i) block.root[i] = std::sqrt(v[i]);
    store(block, moments);
  }
}

void sgd(Out weight, Out m, In gradient, const Sgd& step, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double w = get({weight.data, weight.dtype}, i);
    const double g = get(gradient, i) * step.gradient_scale + static_cast<double>(step.decay) * w;
    double direction = g;
    if (m.data != nullptr) {
      const double sum = static_cast<double>(step.momentum) * get({m.data, m.dtype}, i) + g;
      put(m, i, sum);
      direction = step.nesterov ? g + step.momentum * sum : sum;
    }
    put(weight, i, w - step.rate * direction);
  }
}

void lion(Out weight, Out m, In gradient, const Lion& step, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double w = get({weight.data, weight.dtype}, i), first = get({m.data, m.dtype}, i);
    const double g = get(gradient, i) * step.gradient_scale;
    const double sum = step.beta1 * first + (1.0 - step.beta1) * g;
    const double sign = sum > 0 ? 1 : sum < 0 ? -1 : 0;
    put(weight, i, w - step.rate * (sign + static_cast<double>(step.decay) * w));
    put(m, i, step.beta2 * first + (1.0 - step.beta2) * g);
  }
}

}  // namespace fovea::reference
