#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "http/http.h"

namespace fovea::serve {

// The submissions of one HTTP request to an engine or a queue. They are cancelled when the client
// disconnects.
class Submissions : public std::enable_shared_from_this<Submissions> {
 public:
  // `cancel` cancels a submission by its number.
  explicit Submissions(std::function<void(uint64_t)> cancel) : cancel_(std::move(cancel)) {}

  // Cancels all submissions when the client of the exchange disconnects.
  void follow(http::Exchange& exchange);
  // Adds a submission. Cancels it and returns false if the client has already disconnected.
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
