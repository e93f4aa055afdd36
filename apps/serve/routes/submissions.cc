#include "serve/routes/submissions.h"

namespace fovea::serve {

void Submissions::follow(http::Exchange& exchange) {
  exchange.on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel();
  });
}

bool Submissions::add(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    numbers_.push_back(number);
    if (!cancelled_) return true;
  }
  cancel();
  return false;
}

void Submissions::cancel() {
  std::vector<uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    numbers.swap(numbers_);
  }
  for (const uint64_t number : numbers) cancel_(number);
}

bool Submissions::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

}  // namespace fovea::serve
