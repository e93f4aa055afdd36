#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "http/router.h"

namespace fovea::serve {

// A request of the program itself to one of its routes, whose response stays in memory.
class DirectRequest {
 public:
  // Starts the request. The router must outlive the call only.
  DirectRequest(const http::Router& router, http::Request request);
  ~DirectRequest();  // cancels the request
  DirectRequest(const DirectRequest&) = delete;
  DirectRequest& operator=(const DirectRequest&) = delete;

  // Waits for the response. Returns nothing if it has not come after this time.
  std::optional<http::Response> wait(std::chrono::milliseconds time) const;

 private:
  class State;
  class StoredExchange;
  std::shared_ptr<State> state_;
};

}  // namespace fovea::serve
