#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/http.h"

namespace fovea::http {

struct Route {
  std::string method;     // GET serves HEAD too
  std::string path;       // "/v1/models/{id}": braces match the rest, including slashes
  bool needs_key = true;  // if the server has one
  Handler handler = {};
  // Runs on the server's own thread, so that it responds under any load; only for handlers that
  // neither wait nor compute much.
  bool at_once = false;
  // The error format of this route outside its handler; unset: OpenAI's.
  std::function<Response(int status, const std::string& message, const char* code)> failure = {};
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }

  // The route of a request, whose `rest` is set; or the response if there is none: 404, 405 with
  // Allow, or the response to OPTIONS.
  std::variant<const Route*, Response> find(Request& request) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace fovea::http
