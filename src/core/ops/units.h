#pragma once

#include <memory>
#include <vector>

#include "kernels/kernels.h"

namespace fovea {

// How the rows of a forward pass are divided into units: see Units in kernels.h.
struct RowUnits {
  int64_t count = 1;
  std::shared_ptr<const std::vector<int64_t>> starts;  // the starts of Units, with shared ownership

  Units of(int64_t rows) const;  // throws InvalidArgument if `rows` does not match
};

// During its lifetime, the ops of this thread record that their rows belong to these units, by
// which the gradients of parameters are summed. Without a scope, all rows are one unit.
class UnitScope {
 public:
  explicit UnitScope(RowUnits units);
  ~UnitScope();
  UnitScope(const UnitScope&) = delete;
  UnitScope& operator=(const UnitScope&) = delete;

 private:
  RowUnits before_;
};

const RowUnits& row_units();  // returns the units of the innermost scope of this thread

}  // namespace fovea
