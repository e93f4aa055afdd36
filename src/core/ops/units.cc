#include "ops/units.h"

#include <utility>

#include "base/error.h"

namespace fovea {
namespace {

thread_local RowUnits of_this_thread;

}  // namespace

Units RowUnits::of(int64_t rows) const {
  if (starts != nullptr)
    check(starts->back() == rows, "units: the op has {} rows; expected {}, the rows of all units",
          rows, starts->back());
  else
    check(rows % count == 0, "units: {} rows in {} units; expected equal units", rows, count);
  return {count, starts != nullptr ? starts->data() : nullptr};
}

UnitScope::UnitScope(RowUnits units) : before_(std::exchange(of_this_thread, std::move(units))) {}
UnitScope::~UnitScope() { of_this_thread = std::move(before_); }

const RowUnits& row_units() { return of_this_thread; }

}  // namespace fovea
