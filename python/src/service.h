#pragma once

#include <string>

#include "serve/router.h"

namespace fovea::python {

// The server's answers without HTTP: the routes of `fovea serve` over models in this process.
class Service {
 public:
  explicit Service(serve::Api::Models models);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  serve::Api& api() { return *api_; }
  http::Router router() { return serve::all_routes(*api_); }
  // Answers a request, immediately or later, through the exchange.
  void answer(const std::string& path, std::string body,
              const std::shared_ptr<http::Exchange>& exchange);
  // Returns the engine of the first model. Throws InvalidArgument if it generates no text.
  const serve::TextEngine& engine();
  // Throws Failed after fork(): the threads of the engine are those of the parent.
  void check_process() const;

 private:
  std::unique_ptr<serve::Api> api_;
  http::Router router_;
  int process_;
};

}  // namespace fovea::python
