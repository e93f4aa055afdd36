// Mixtures of experts.

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

namespace {

// Returns the first `count` of the indices in [begin, end) that are `allowed`, by descending value.
// The comparison is false for NaN.
std::vector<int64_t> best(const std::vector<double>& values, std::vector<bool> allowed,
                          int64_t begin, int64_t end, int64_t count) {
  std::vector<int64_t> chosen;
  while (std::ssize(chosen) < count) {
    int64_t largest = -1;
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      if (allowed[at] && (largest < 0 || values[at] > values[static_cast<size_t>(largest)]))
        largest = i;
    }
    allowed[static_cast<size_t>(largest)] = false;
    chosen.push_back(largest);
  }
  return chosen;
}

}  // namespace

void choose_experts(Out experts, In scores, In bias, const ExpertChoice& choice, Rows rows) {
  const int64_t size = rows.width / choice.groups;
  int32_t* next = indices_in(experts);
  for (int64_t r = 0; r < rows.count; ++r) {
    std::vector<double> values(static_cast<size_t>(rows.width)), of_groups;
    for (int64_t e = 0; e < rows.width; ++e)
      values[static_cast<size_t>(e)] =
          get(scores, r * rows.width + e) + (bias.data == nullptr ? 0 : get(bias, e));
    const std::vector<bool> every(values.size(), true);
    for (int64_t g = 0; g < choice.groups; ++g) {
      const int64_t summed = bias.data == nullptr ? 1 : std::min<int64_t>(2, size);
      double sum = 0;
      for (const int64_t e : best(values, every, g * size, (g + 1) * size, summed))
        sum += values[static_cast<size_t>(e)];
      of_groups.push_back(sum);
    }
    std::vector<bool> allowed(values.size(), false);
    for (const int64_t g : best(of_groups, every, 0, choice.groups, choice.groups_chosen))
      std::fill_n(allowed.begin() + g * size, size, true);
    for (const int64_t e : best(values, allowed, 0, rows.width, choice.chosen))
      *next++ = static_cast<int32_t>(e);
  }
}

int64_t first_outside(Indices numbers, int64_t count, int64_t limit) {
  for (int64_t i = 0; i < count; ++i)
    if (numbers[i] < 0 || numbers[i] >= limit) return i;
  return -1;
}

void group_by_expert(Out rows, Out slots, int64_t* counts, Indices choices, int64_t row_count,
                     int64_t k, int64_t experts) {
  std::vector<int32_t> order(static_cast<size_t>(row_count * k));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return choices[a] < choices[b]; });
  std::fill_n(counts, experts, 0);
  for (size_t slot = 0; slot < order.size(); ++slot) {
    const int32_t choice = order[slot];
    indices_in(rows)[slot] = choice / static_cast<int32_t>(k);
    indices_in(slots)[choice] = static_cast<int32_t>(slot);
    ++counts[choices[choice]];
  }
}

void pick(Out y, In x, Indices columns, int64_t k, Rows rows) {
  for (int64_t i = 0; i < rows.count * k; ++i) put(y, i, get(x, i / k * rows.width + columns[i]));
}

void pick_backward(Out dx, In dy, Indices columns, int64_t k, Rows rows) {
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    double sum = 0;
    for (int64_t j = i / rows.width * k; j < (i / rows.width + 1) * k; ++j)
      if (columns[j] == i % rows.width) sum += get(dy, j);
    put(dx, i, sum);
  }
}

void combine(Out y, In z, Indices slots, In weights, int64_t choices, Rows rows) {
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    const int64_t row = i / rows.width;
    double sum = 0;
    for (int64_t j = row * choices; j < (row + 1) * choices; ++j)
      sum += get(weights, j) * get(z, slots[j] * rows.width + i % rows.width);
    put(y, i, sum);
  }
}

void combine_backward(Out dz, Out dweights, In dy, In z, Indices slots, In weights, int64_t choices,
                      Rows rows) {
  for (int64_t j = 0; j < rows.count * choices; ++j) {
    const int64_t from = j / choices * rows.width, to = slots[j] * rows.width;
    double dot = 0;
    for (int64_t c = 0; c < rows.width; ++c) {
      dot += get(dy, from + c) * get(z, to + c);
      put(dz, to + c, get(weights, j) * get(dy, from + c));
    }
    put(dweights, j, dot);
  }
}

}  // namespace fovea::reference
