// Steps of optimisers.

#include "base/philox.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/layout/packed_moments.h"
//
#include "kernels/cpu/adamw-inl.h"

namespace fovea::cuda {

KERNEL(adamw)(Out weight, Out m, Out v, In gradient, AdamW step, int64_t size) {
  const cpu::one_number::AdamWStep update(step);
  const cpu::one_number::Whole access;
  auto *const weights = static_cast<float*>(weight.data),
              *const first = static_cast<float*>(m.data),
              *const second = static_cast<float*>(v.data);
  for (int64_t i = first_element(); i < size; i += element_stride())
    update(access, weights + i, first[i], second[i], static_cast<const float*>(gradient.data) + i);
}

// A warp for each block of moments.
KERNEL(packed_adamw)
(Out weight, PackedMoments moments, In gradient, AdamW step, int64_t size) {
  constexpr int kElements = kMomentBlock / kWarp;  // of a lane
  const cpu::one_number::AdamWStep update(step);
  const cpu::one_number::Whole access;
  auto *const m_codes = static_cast<uint8_t*>(moments.m.data), *const v_codes =
                                                                   static_cast<uint8_t*>(
                                                                       moments.v.data);
  const auto fraction = [](float x, float largest) { return largest > 0 ? x / largest : 0; };
  for (int64_t block = first_row(); block * kMomentBlock < size; block += row_stride()) {
    auto *const largest_m = static_cast<float*>(moments.largest_m.data) + block,
                *const largest_v = static_cast<float*>(moments.largest_v.data) + block;
    const float old_m = *largest_m, old_v = *largest_v;
    float m[kElements], root[kElements], most_m = 0, most_v = 0;
    UNROLLED for (int n = 0; n < kElements; ++n) {
      const int64_t e = block * kMomentBlock + n * kWarp + lane();
      m[n] = root[n] = 0;
      if (e >= size) continue;
      const int32_t code = m_codes[e];
      const float magnitude = MCode::value(code & MCode::kLast) * old_m;
      m[n] = code > MCode::kLast ? -magnitude : magnitude;
      root[n] = VCode::value(v_codes[e]) * old_v;
      float second = root[n] * root[n];
      update(access, static_cast<float*>(weight.data) + e, m[n], second,
             static_cast<const float*>(gradient.data) + e);
      root[n] = sqrtf(second);
      most_m = fmaxf(most_m, fabsf(m[n]));
      most_v = fmaxf(most_v, root[n]);
    }
    most_m = largest_over<kWarp>(most_m);
    most_v = largest_over<kWarp>(most_v);
    UNROLLED for (int n = 0; n < kElements; ++n) {
      const int64_t e = block * kMomentBlock + n * kWarp + lane();
      if (e >= size) continue;
      const uint32_t word = philox_words(moments.seed, Stream::moments, moments.parameter,
                                         moment_counter(moments.step, e))
                                .word(static_cast<uint64_t>(e));
      const int32_t m_code = MCode::of(fraction(fabsf(m[n]), most_m), word & 0xffff);
      const auto sign = static_cast<int32_t>((bits_of(m[n]) & 0x80000000u) >> 24);
      m_codes[e] = static_cast<uint8_t>(m_code | sign);
      const float v = fraction(root[n], most_v);
      const int32_t v_code = VCode::of(v, word >> 16);
      v_codes[e] = static_cast<uint8_t>(v > 0 && v_code == 0 ? 1 : v_code);
    }
    if (lane() != 0) continue;
    *largest_m = most_m;
    *largest_v = most_v;
  }
}

KERNEL(sgd)(Out weight, Out m, In gradient, Sgd step, int64_t size) {
  auto *const weights = static_cast<float*>(weight.data), *const sums = static_cast<float*>(m.data);
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    const float old = weights[i];
    const float g = multiply_add(step.gradient_scale, get(gradient, i), step.decay * old);
    float direction = g;
    if (sums != nullptr) {
      sums[i] = multiply_add(step.momentum, sums[i], g);
      direction = step.nesterov ? multiply_add(step.momentum, sums[i], g) : sums[i];
    }
    weights[i] = multiply_add(-step.rate, direction, old);
  }
}

KERNEL(lion)(Out weight, Out m, In gradient, Lion step, int64_t size) {
  auto *const weights = static_cast<float*>(weight.data), *const first =
                                                              static_cast<float*>(m.data);
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    const float g = step.gradient_scale * get(gradient, i), old = weights[i];
    const auto mixed = [&](float beta) { return multiply_add(beta, first[i], (1 - beta) * g); };
    const float sum = mixed(step.beta1), sign = sum == 0 ? 0 : copysignf(1.0f, sum);
    first[i] = mixed(step.beta2);
    weights[i] = multiply_add(-step.rate, multiply_add(step.decay, old, sign), old);
  }
}

}  // namespace fovea::cuda
