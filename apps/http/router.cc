#include "http/router.h"

#include <optional>
#include <set>

#include "fovea/core/excerpt.h"

namespace fovea::http {
namespace {

// Returns the value of the part in braces (empty for a route without braces) if the path matches.
std::optional<std::string> match(const std::string& pattern, const std::string& path) {
  const size_t brace = pattern.find('{');
  if (brace == std::string::npos) {
    return pattern == path ? std::optional<std::string>("") : std::nullopt;
  }
  const std::string_view before(pattern.data(), brace);
  const std::string_view after = std::string_view(pattern).substr(pattern.find('}') + 1);
  const std::string_view text = path;
  const bool matches = text.size() > before.size() + after.size() &&
                       text.substr(0, before.size()) == before &&
                       text.substr(text.size() - after.size()) == after;
  if (!matches) return std::nullopt;
  return path.substr(brace, path.size() - before.size() - after.size());
}

std::string joined(const std::set<std::string>& methods) {
  std::string allow = "OPTIONS";
  for (const std::string& method : methods) allow += ", " + method;
  return allow;
}

}  // namespace

std::variant<const Route*, Refusal, Response> Router::find(Request& request) const {
  std::set<std::string> methods;
  const bool any = request.path == "*";
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();
  for (const Route& route : routes_) {
    const auto rest = match(route.path, request.path);
    if (!rest && !any) continue;
    const bool head = request.method == "HEAD" && route.method == "GET";
    if (rest && (route.method == request.method || head)) {
      request.rest = *rest;
      return &route;
    }
    methods.insert(route.method);
    if (route.method == "GET") methods.insert("HEAD");
  }
  if (methods.empty())
    return Refusal{404, "the path " + excerpt(request.path, 200) + " does not exist",
                   "unknown_path"};
  const std::string allow = joined(methods);
  if (request.method == "OPTIONS") return Response{204, "", {{"Allow", allow}}, ""};
  return Refusal{405, "this path accepts only " + allow, "method_not_allowed", {{"Allow", allow}}};
}

}  // namespace fovea::http
