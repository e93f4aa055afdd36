#include "http/held_memory.h"

namespace fovea::http {

bool HeldMemory::Share::set(int64_t bytes, int64_t free) {
  const int64_t more = bytes - bytes_;
  const int64_t all = all_->held_ += more;
  if (more > 0 && bytes > free && all > all_->most_) {
    all_->held_ -= more;
    return false;
  }
  bytes_ = bytes;
  int64_t peak = all_->peak_;
  while (all > peak && !all_->peak_.compare_exchange_weak(peak, all)) {
  }
  return true;
}

}  // namespace fovea::http
