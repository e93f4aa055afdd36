#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cc"
#include <hwy/foreach_target.h>

#include <numeric>
#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"
#include "kernels/sum_tree.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void gather(Out y, In table, const int32_t* ids, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(2 * width));
    for (int64_t i = first; i < last; ++i) {
      float* room = room_for(y, i * width, scratch.data());
      std::copy_n(widened(table, ids[i] * width, width, scratch.data() + width), width, room);
      narrow_into(y, i * width, width, room);
    }
  });
}

// The rows of dy sorted by id, in ascending order within an id: those of `id` are order[starts[id]]
// to order[starts[id + 1] - 1].
struct Groups {
  std::vector<int64_t> starts, order;

  Groups(const int32_t* ids, int64_t count, int64_t entries)
      : starts(static_cast<size_t>(entries + 1)), order(static_cast<size_t>(count)) {
    for (int64_t i = 0; i < count; ++i) ++starts[static_cast<size_t>(ids[i]) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (int64_t i = 0; i < count; ++i)
      order[static_cast<size_t>(next[static_cast<size_t>(ids[i])]++)] = i;
  }
};

// dtable[entry] (+)= the sum of its rows of dy, for entries [first, last). The tree omits units
// without such a row.
void scatter_entries(Out dtable, In dy, const Groups& groups, Rows rows, int64_t first,
                     int64_t last) {
  const int64_t width = rows.width;
  std::vector<float> sums(static_cast<size_t>(SumTree::slots(rows.units.count) * width));
  std::vector<float> scratch(static_cast<size_t>(width));
  const auto merge = [&](int slot) HWY_ATTR {
    float* sum = sums.data() + slot * width;
    add_floats(sum - width, sum, width);
  };
  for (size_t entry = static_cast<size_t>(first); entry < static_cast<size_t>(last); ++entry) {
    const int64_t begin = groups.starts[entry], end = groups.starts[entry + 1];
    if (begin == end && dtable.add) continue;
    SumTree tree;
    int64_t unit = -1;
    float* sum = sums.data();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = groups.order[static_cast<size_t>(i)];
      const int64_t its_unit = rows.units.of(row, rows.count);
      if (its_unit != unit) {
        unit = its_unit;
        sum = sums.data() + tree.next(unit, merge) * width;
        std::fill_n(sum, width, 0.0f);
      }
      add_floats(sum, widened(dy, row * width, width, scratch.data()), width);
    }
    if (!tree.finish(merge)) std::fill_n(sums.data(), width, 0.0f);
    narrow_into(dtable, static_cast<int64_t>(entry) * width, width, sums.data());
  }
}

// The threads share the entries. There are more pieces than most machines have threads, because
// frequent ids are often adjacent.
void scatter(Out dtable, In dy, const int32_t* ids, Rows rows, int64_t entries) {
  constexpr int64_t kPieces = 64;
  const Groups groups(ids, rows.count, entries);
  const bool small = (rows.count + entries) * rows.width < kGrainElements;
  const int64_t pieces = small ? 1 : std::min(entries, kPieces);
  parallel_tasks(pieces, [&](int64_t piece) HWY_ATTR {
    scatter_entries(dtable, dy, groups, rows, entries * piece / pieces,
                    entries * (piece + 1) / pieces);
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(gather);
HWY_EXPORT(scatter);

void embedding(Out y, In table, Indices ids, Rows rows) {
  check_stored_types(y, table);
  HWY_DYNAMIC_DISPATCH(gather)(y, table, ids, rows);
}

void embedding_backward(Out dtable, In dy, Indices ids, Rows rows, int64_t entries) {
  check_stored_types(dtable, dy);
  if (entries > 0) HWY_DYNAMIC_DISPATCH(scatter)(dtable, dy, ids, rows, entries);
}

}  // namespace fovea::cpu
#endif
