#include "base/stop.h"

#include <utility>

namespace fovea {
namespace {

thread_local StopScope* innermost = nullptr;
constexpr std::chrono::milliseconds kPause{5};

}  // namespace

StopScope::StopScope(std::function<bool()> requested)
    : requested_(std::move(requested)), outer_(innermost) {
  innermost = this;
}

StopScope::~StopScope() { innermost = outer_; }

bool StopScope::requested() const {
  return requested_() || (outer_ != nullptr && outer_->requested());
}

void stop_if_requested() {
  if (innermost == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < innermost->next_) return;
  innermost->next_ = now + kPause;
  if (innermost->requested()) throw Stopped();
}

}  // namespace fovea
