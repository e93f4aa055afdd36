#include "http/access.h"

#include <algorithm>

namespace fovea::http {
namespace {

// Returns "::1" for "[::1]:8080", and "localhost" for "localhost:8080".
std::string_view without_port(std::string_view host) {
  if (!host.empty() && host.front() == '[') return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

std::string_view given_key(const Request& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = request.header("authorization");
  const auto same = [](char given, char small) {  // case-insensitive: RFC 9110, 11.1
    return given == small || (given >= 'A' && given <= 'Z' && given - 'A' + 'a' == small);
  };
  if (value.size() >= kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), value.begin(),
                 [&](char small, char given) { return same(given, small); })) {
    return value.substr(kScheme.size());
  }
  return request.header("x-api-key");
}

// Returns whether the origin is that of this server's own pages, which a proxy may serve with TLS.
bool same_origin(const Request& request) {
  const std::string_view origin = request.header("origin");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == request.header("host"))
      return true;
  }
  return false;
}

// Returns whether a browser sends the request for a page of another origin. Images, scripts and
// links of such a page have no Origin, but every browser tells the site (Fetch Metadata).
bool from_another_site(const Request& request) {
  const std::string_view site = request.header("sec-fetch-site");
  return !site.empty() && site != "same-origin" && site != "none";
}

}  // namespace

bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.substr(0, 4) == "127.";
}

bool Access::known_host(std::string_view value) const {
  const std::string_view name = without_port(value);
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == host;
}

bool Access::knows_key(const Request& request) const {
  const std::string_view given = given_key(request);
  bool known = false;
  for (const std::string& key : keys) known |= equal_in_constant_time(given, key);
  return known;
}

const std::string* Access::allowed_origin(const Request& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return nullptr;
  for (const std::string& allowed : origins) {
    if (allowed == "*" || allowed == origin) return &allowed;
  }
  return nullptr;
}

std::optional<Refusal> Access::refuse(const Request& request, bool needs_key) const {
  if (loopback && !request.header("host").empty() && !known_host(request.header("host"))) {
    return Refusal{403, "Host: expected localhost or this server's address", "unknown_host"};
  }
  if (!request.header("origin").empty() && !same_origin(request) && !allowed_origin(request)) {
    return Refusal{403, "Origin: pages of other origins are refused; see --cors-origin",
                   "origin_not_allowed"};
  }
  const bool open = std::find(origins.begin(), origins.end(), "*") != origins.end();
  if (!open && from_another_site(request) && !allowed_origin(request)) {
    return Refusal{403,
                   "Sec-Fetch-Site: requests of other sites are refused; open this address itself, "
                   "or see --cors-origin",
                   "origin_not_allowed"};
  }
  const bool preflight = request.method == "OPTIONS";  // sent by browsers without the key
  if (keys.empty() || !needs_key || preflight || knows_key(request)) return std::nullopt;
  return Refusal{401,
                 "a valid key is needed; expected \"Authorization: Bearer KEY\"",
                 "invalid_api_key",
                 {{"WWW-Authenticate", "Bearer"}}};
}

void Access::add_cors_headers(const Request& request, Response& response) const {
  const std::string* const origin = allowed_origin(request);
  if (origin == nullptr) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", *origin);
  response.headers.emplace_back("Vary", "Origin");
  if (request.method != "OPTIONS") return;
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  // Clients send headers of their own, which are harmless from an allowed origin.
  const std::string_view requested = request.header("access-control-request-headers");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                requested.empty()
                                    ? "Authorization, Content-Type, X-Api-Key, X-Request-Id"
                                    : std::string(requested));
  response.headers.emplace_back("Access-Control-Max-Age", "600");
}

}  // namespace fovea::http
