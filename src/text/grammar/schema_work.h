#pragma once

#include <cstddef>

#include "base/stop.h"
#include "grammar/schema_location.h"

namespace fovea::text {

// Counts the work on a schema, so that a short text cannot ask for hours of it.
class SchemaWork {
 public:
  // Adds steps of about 15 ns, such as the lookup of a key. Throws Unsupported above the limit.
  void add(size_t steps, const SchemaLocation& location) {
    stop_if_requested();
    steps_ += steps;
    if (steps_ > kMost)
      refuse_keyword(location, "too many combinations of schemas or values; expected fewer");
  }

 private:
  static constexpr size_t kMost = 3'000'000;
  size_t steps_ = 0;
};

}  // namespace fovea::text
