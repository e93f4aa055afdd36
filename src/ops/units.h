#pragma once

#include <memory>
#include <vector>

#include "kernels/kernels.h"

namespace fovea {

// Into which units the rows of a forward pass fall: see Units in kernels.h.
struct RowUnits {
  int64_t count = 1;
  std::shared_ptr<const std::vector<int64_t>> starts;  // as Units has them, but they live on

  Units of(int64_t rows) const;  // refuses rows that do not fall into these units
};

// While it lives, ops record that the rows which they read fall into these units: it is theirs by
// which the gradients of parameters are summed. Without one all rows are one unit.
class UnitScope {
 public:
  explicit UnitScope(RowUnits units);
  ~UnitScope();
  UnitScope(const UnitScope&) = delete;
  UnitScope& operator=(const UnitScope&) = delete;

 private:
  RowUnits before_;
};

const RowUnits& row_units();  // of the innermost scope of this thread

}  // namespace fovea
