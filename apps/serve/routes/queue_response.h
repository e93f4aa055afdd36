#pragma once

#include <memory>

#include "serve/request/api_error.h"
#include "serve/routes/submissions.h"

namespace fovea::serve {

// Submits work to a queue and responds with its result. `submit(done)` submits to the queue;
// `render` converts the result to a body.
template <class Result, class Queue, class Submit, class Render>
void respond_from(const std::shared_ptr<Queue>& queue,
                  const std::shared_ptr<http::Exchange>& exchange, ErrorShape shape,
                  const Submit& submit, const Render& render) {
  const auto submissions =
      std::make_shared<Submissions>([weak = std::weak_ptr<Queue>(queue)](uint64_t number) {
        if (const auto alive = weak.lock()) alive->cancel(number);
      });
  submissions->follow(*exchange);
  const uint64_t number = submit([=, kept = submissions](const Result* result, const Error* error) {
    if (error != nullptr) {
      exchange->send(
          error_response(shape, ApiError{status_of(error->kind()), error->what(), "", ""}));
    } else {
      exchange->send({200, "application/json", {}, render(*result)});
    }
  });
  if (number == 0) throw too_busy();
  submissions->add(number);
}

}  // namespace fovea::serve
