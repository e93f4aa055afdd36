// Mixtures of experts: a thread for each row chooses, and elements are combined.

#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/tile_sizes.h"

namespace fovea::cuda {
namespace {

// Which of at most kMostExperts values are taken.
struct Taken {
  uint32_t words[kMostExperts / 32];

  DEVICE void fill(bool taken) {
    for (uint32_t& word : words) word = taken ? 0xffffffffu : 0;
  }
  DEVICE bool at(int64_t i) const { return (words[i / 32] >> i % 32 & 1) != 0; }
  DEVICE void set(int64_t i, bool taken) {
    const uint32_t bit = 1u << i % 32;
    words[i / 32] = taken ? words[i / 32] | bit : words[i / 32] & ~bit;
  }
};

// Returns the index of the largest of the values [begin, end) that are not taken, and takes it.
// Comparisons with NaN are false.
template <class Value>
DEVICE int64_t take_largest(const Value& value, Taken& taken, int64_t begin, int64_t end) {
  int64_t best = -1;
  for (int64_t i = begin; i < end; ++i)
    if (!taken.at(i) && (best < 0 || value(i) > value(best))) best = i;
  taken.set(best, true);
  return best;
}

}  // namespace

KERNEL(choose_experts)
(Out experts, In scores, In bias, ExpertChoice choice, int64_t count, int64_t width) {
  const int64_t size = width / choice.groups;
  const int64_t summed = bias.data == nullptr || size < 2 ? 1 : 2;
  for (int64_t r = first_element(); r < count; r += element_stride()) {
    const auto value = [&](int64_t e) {
      return get(scores, r * width + e) + (bias.data != nullptr ? get(bias, e) : 0);
    };
    Taken taken;
    taken.fill(false);
    if (choice.groups_chosen < choice.groups) {
      // A group's value is the sum of its `summed` largest ones.
      float of_groups[kMostExperts];
      for (int64_t g = 0; g < choice.groups; ++g) {
        float sum = 0;
        for (int64_t n = 0; n < summed; ++n)
          sum += value(take_largest(value, taken, g * size, (g + 1) * size));
        of_groups[g] = sum;
      }
      taken.fill(true);
      Taken groups_taken;
      groups_taken.fill(false);
      const auto of_group = [&](int64_t g) { return of_groups[g]; };
      for (int64_t n = 0; n < choice.groups_chosen; ++n) {
        const int64_t best = take_largest(of_group, groups_taken, 0, choice.groups);
        for (int64_t e = best * size; e < (best + 1) * size; ++e) taken.set(e, false);
      }
    }
    auto* const chosen = static_cast<int32_t*>(experts.data) + r * choice.chosen;
    for (int64_t j = 0; j < choice.chosen; ++j)
      chosen[j] = static_cast<int32_t>(take_largest(value, taken, 0, width));
  }
}

KERNEL(pick)(Out y, In x, const int32_t* columns, int64_t k, int64_t count, int64_t width) {
  for (int64_t e = first_element(); e < count * k; e += element_stride())
    put(y, e, get(x, e / k * width + columns[e]));
}

KERNEL(pick_backward)
(Out dx, In dy, const int32_t* columns, int64_t k, int64_t count, int64_t width) {
  for (int64_t e = first_element(); e < count * width; e += element_stride()) {
    const int64_t row = e / width, column = e % width;
    float sum = 0;
    for (int64_t j = row * k; j < (row + 1) * k; ++j)
      if (columns[j] == column) sum += get(dy, j);
    put(dx, e, sum);
  }
}

KERNEL(combine)
(Out y, In z, const int32_t* slots, In weights, int64_t choices, int64_t count, int64_t width) {
  for (int64_t e = first_element(); e < count * width; e += element_stride()) {
    const int64_t row = e / width, c = e % width;
    float sum = 0;
    for (int64_t j = row * choices; j < (row + 1) * choices; ++j)
      sum = multiply_add(get(weights, j), get(z, slots[j] * width + c), sum);
    put(y, e, sum);
  }
}

// A warp for each choice of each row.
KERNEL(combine_backward)
(Out dz, Out dweights, In dy, In z, const int32_t* slots, In weights, int64_t choices,
 int64_t count, int64_t width) {
  for (int64_t j = first_row(); j < count * choices; j += row_stride()) {
    const int64_t row = j / choices * width, slot = slots[j] * width;
    const float dot = sum_of_row(width, [&](int64_t c, float s) {
      return multiply_add(get(dy, row + c), get(z, slot + c), s);
    });
    if (dweights.data != nullptr && lane() == 0) put(dweights, j, dot);
    if (dz.data == nullptr) continue;
    for (int64_t c = lane(); c < width; c += kWarp)
      put(dz, slot + c, get(weights, j) * get(dy, row + c));
  }
}

}  // namespace fovea::cuda
