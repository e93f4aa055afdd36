#pragma once

// The blocks of rows whose sums over rows are added separately; see entries.inc.

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace fovea {

inline constexpr int64_t kRowBlock = 64;

// Each unit begins a new block.
struct RowBlocks {
  std::vector<int64_t> rows;      // the first row of each block, then the end
  std::vector<int64_t> of_units;  // the first block of each unit, then the end

  explicit RowBlocks(const Rows& all) {
    for (int64_t unit = 0; unit < all.units.count; ++unit) {
      of_units.push_back(std::ssize(rows));
      const int64_t end = all.units.start(unit + 1, all.count);
      for (int64_t row = all.units.start(unit, all.count); row < end; row += kRowBlock)
        rows.push_back(row);
    }
    of_units.push_back(std::ssize(rows));
    rows.push_back(all.count);
  }
  int64_t count() const { return std::ssize(rows) - 1; }
  int64_t begin(int64_t block) const { return rows[static_cast<size_t>(block)]; }
  int64_t end(int64_t block) const { return rows[static_cast<size_t>(block) + 1]; }
};

}  // namespace fovea
