#include "base/stop.h"

#include <utility>

namespace fovea {
namespace {

thread_local StopScope* innermost = nullptr;
constexpr std::chrono::milliseconds kPause{5};

}  // namespace

StopScope::StopScope(std::function<bool()> asked) : asked_(std::move(asked)), outer_(innermost) {
  innermost = this;
}

StopScope::~StopScope() { innermost = outer_; }

bool StopScope::asked() const { return asked_() || (outer_ != nullptr && outer_->asked()); }

void stop_if_asked() {
  if (innermost == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < innermost->next_) return;
  innermost->next_ = now + kPause;
  if (innermost->asked()) throw Stopped();
}

}  // namespace fovea
