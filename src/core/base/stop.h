#pragma once

#include <chrono>
#include <functional>

#include "base/error.h"

namespace fovea {

// Thrown by stop_if_requested().
class Stopped : public Error {
 public:
  Stopped() : Error(ErrorKind::Failed, "stopped: nobody waits for the result") {}
};

// During its lifetime, long work of this thread ends soon after `requested` returns true: the loops
// of the library call stop_if_requested(). Scopes nest; each of them may stop the work.
class StopScope {
 public:
  explicit StopScope(std::function<bool()> requested);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  friend void stop_if_requested();
  bool requested() const;

  std::function<bool()> requested_;
  StopScope* outer_;
  std::chrono::steady_clock::time_point next_ = {};  // when to ask again
};

// Throws Stopped if the result of this thread's work is not needed. Cheap enough for inner loops:
// it asks at most every 5 ms.
void stop_if_requested();

}  // namespace fovea
