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
  std::string path;       // "/v1/models/{id}": what is in braces takes the rest, slashes too
  bool needs_key = true;  // where the server has one
  Handler handler = {};
  // Runs on the server's own thread, so that it answers whatever else is being done: for handlers
  // that wait for nothing and compute next to nothing.
  bool at_once = false;
  // How its clients read what goes wrong outside the handler; OpenAI's form where absent.
  std::function<Response(int status, const std::string& message, const char* code)> failure = {};
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }

  // The route for a request, whose `rest` is filled in; or the answer where there is none: 404,
  // 405 with Allow, or what OPTIONS asks for.
  std::variant<const Route*, Response> find(Request& request) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace fovea::http
