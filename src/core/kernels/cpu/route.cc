#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/route.cc"
#include <hwy/foreach_target.h>

#include <numeric>
#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Returns the index of the largest of the values that are not taken, and takes it. Comparisons with
// NaN are false.
inline int64_t take_largest(const float* values, uint8_t* taken, int64_t count) {
  int64_t best = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (!taken[i] && (best < 0 || values[i] > values[best])) best = i;
  }
  taken[best] = 1;
  return best;
}

// The values of the experts of one row and of their groups, and which of them are taken.
struct Candidates {
  std::vector<float> values, of_groups;
  std::vector<uint8_t> taken, groups_taken;

  Candidates(int64_t experts, int64_t groups)
      : values(static_cast<size_t>(experts)),
        of_groups(static_cast<size_t>(groups)),
        taken(values.size()),
        groups_taken(of_groups.size()) {}

  // Takes all experts but those of the best groups. A group's value is the sum of its `summed`
  // largest ones.
  void keep_best_groups(int64_t chosen, int64_t summed) {
    const auto groups = std::ssize(of_groups), size = std::ssize(values) / groups;
    std::fill(taken.begin(), taken.end(), uint8_t{0});
    for (int64_t g = 0; g < groups; ++g) {
      const float* own = values.data() + g * size;
      float sum = 0;
      for (int64_t n = 0; n < summed; ++n)
        sum += own[take_largest(own, taken.data() + g * size, size)];
      of_groups[static_cast<size_t>(g)] = sum;
    }
    std::fill(taken.begin(), taken.end(), uint8_t{1});
    std::fill(groups_taken.begin(), groups_taken.end(), uint8_t{0});
    for (int64_t n = 0; n < chosen; ++n) {
      const int64_t best = take_largest(of_groups.data(), groups_taken.data(), groups);
      std::fill_n(taken.begin() + best * size, size, uint8_t{0});
    }
  }
};

void choose_in_rows(int32_t* experts, In scores, In bias, const ExpertChoice& choice, Rows rows) {
  const int64_t width = rows.width, k = choice.chosen;
  const int64_t summed = bias.data == nullptr ? 1 : std::min<int64_t>(2, width / choice.groups);
  parallel_for(
      rows.count, grain_of({rows.count, width * k}), [&](int64_t first, int64_t last) HWY_ATTR {
        Candidates candidates(width, choice.groups);
        auto& values = candidates.values;
        auto& taken = candidates.taken;
        std::vector<float> biases(values.size()), scratch(biases);
        if (bias.data != nullptr)
          std::copy_n(widened(bias, 0, width, scratch.data()), width, biases.begin());
        for (int64_t r = first; r < last; ++r) {
          const float* row = widened(scores, r * width, width, scratch.data());
          for (size_t e = 0; e < values.size(); ++e) values[e] = row[e] + biases[e];
          if (choice.groups_chosen < choice.groups)
            candidates.keep_best_groups(choice.groups_chosen, summed);
          else
            std::fill(taken.begin(), taken.end(), uint8_t{0});
          for (int64_t j = r * k; j < (r + 1) * k; ++j)
            experts[j] = static_cast<int32_t>(take_largest(values.data(), taken.data(), width));
        }
      });
}

void pick_in_rows(Out y, In x, const int32_t* columns, int64_t k, Rows rows) {
  parallel_for(rows.count, grain_of({rows.count, k}), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(k));
    float element = 0;
    for (int64_t r = first; r < last; ++r) {
      float* room = room_for(y, r * k, scratch.data());
      for (int64_t j = 0; j < k; ++j)
        room[j] = *widened(x, r * rows.width + columns[r * k + j], 1, &element);
      narrow_into(y, r * k, k, room);
    }
  });
}

void pick_in_rows_backward(Out dx, In dy, const int32_t* columns, int64_t k, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> sums(static_cast<size_t>(width)), scratch(static_cast<size_t>(k));
    for (int64_t r = first; r < last; ++r) {
      const float* gradients = widened(dy, r * k, k, scratch.data());
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t j = 0; j < k; ++j) sums[static_cast<size_t>(columns[r * k + j])] += gradients[j];
      narrow_into(dx, r * width, width, sums.data());
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(choose_in_rows);
HWY_EXPORT(pick_in_rows);
HWY_EXPORT(pick_in_rows_backward);

void choose_experts(Out experts, In scores, In bias, const ExpertChoice& choice, Rows rows) {
  check_stored_types(scores, bias);
  HWY_DYNAMIC_DISPATCH(choose_in_rows)(indices_in(experts), scores, bias, choice, rows);
}

int64_t first_outside(Indices numbers, int64_t count, int64_t limit) {
  const int32_t* const begin = numbers;
  const int32_t* const end = begin + count;
  const int32_t* const found =
      std::find_if(begin, end, [limit](int32_t n) { return n < 0 || n >= limit; });
  return found == end ? -1 : found - begin;
}

// A counting sort.
void group_by_expert(Out rows, Out slots, int64_t* counts, Indices choices, int64_t row_count,
                     int64_t k, int64_t experts) {
  std::fill_n(counts, experts, 0);
  for (int64_t i = 0; i < row_count * k; ++i) ++counts[choices[i]];
  std::vector<int64_t> next(static_cast<size_t>(experts));
  std::exclusive_scan(counts, counts + experts, next.begin(), int64_t{0});
  for (int64_t i = 0; i < row_count * k; ++i) {
    const int64_t slot = next[static_cast<size_t>(choices[i])]++;
    indices_in(rows)[slot] = static_cast<int32_t>(i / k);
    indices_in(slots)[i] = static_cast<int32_t>(slot);
  }
}

void pick(Out y, In x, Indices columns, int64_t k, Rows rows) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(pick_in_rows)(y, x, columns, k, rows);
}

void pick_backward(Out dx, In dy, Indices columns, int64_t k, Rows rows) {
  check_stored_types(dx, dy);
  HWY_DYNAMIC_DISPATCH(pick_in_rows_backward)(dx, dy, columns, k, rows);
}

}  // namespace fovea::cpu
#endif
