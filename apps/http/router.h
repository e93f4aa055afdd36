#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/http.h"

namespace fovea::http {

struct Route {
  std::string method;  // GET also serves HEAD
  // "/v1/models/{id}", "/v1/files/{id}/content": braces match any text, including slashes. The
  // first route that matches is used.
  std::string path;
  bool needs_key = true;  // applies if the server has a key
  Handler handler = {};
  // The handler runs on the server's own thread, so that it responds under any load. Set it
  // only for handlers that neither wait nor compute much.
  bool at_once = false;
  ErrorFormat format_error = {};  // of the server's own errors; unset: the server's format
  // Maximum bytes of a body; 0 = the server's limit. Few bodies above the server's limit are
  // accepted at the same time; further ones receive 503.
  size_t most_body = 0;
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }

  // Returns the route of a request, and sets the request's `rest`. Without a route, returns the
  // refusal (404, or 405 with Allow), or the response to OPTIONS.
  std::variant<const Route*, Refusal, Response> find(Request& request) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace fovea::http
