#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "http/http.h"

namespace fovea::serve {

// What one HTTP request gave to an engine or a queue, which is called off once its client goes.
class Submissions : public std::enable_shared_from_this<Submissions> {
 public:
  // `cancel` calls one off by its number.
  explicit Submissions(std::function<void(uint64_t)> cancel) : cancel_(std::move(cancel)) {}

  // Calls all off when the client of the exchange goes.
  void follow(Exchange& exchange);
  // One more was taken on. False where the client went meanwhile: it is called off.
  bool add(uint64_t number);
  void cancel();
  bool cancelled() const;

 private:
  const std::function<void(uint64_t)> cancel_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> numbers_;
  bool cancelled_ = false;
};

}  // namespace fovea::serve
