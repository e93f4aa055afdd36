#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"

namespace fovea::http {

// Whether two texts are equal, in a time that depends on the length of `given` alone.
bool equal_in_constant_time(std::string_view given, std::string_view secret);

// Who may ask. A web page in the user's browser must not reach a server on the loopback address:
// neither from a name that it points there (Host), nor from its own origin (Origin).
struct Access {
  std::vector<std::string> keys;     // none: no key is asked for
  std::vector<std::string> origins;  // that may read answers in a browser; "*" = every one
  bool loopback = true;              // the server is bound to it
  std::string host;                  // as the user named it; accepted in Host

  // The answer to a request that is not let through; `needs_key` is the route's.
  std::optional<Response> refuse(const Request& request, bool needs_key) const;
  // What a browser of an allowed origin needs to see.
  void add_cors_headers(const Request& request, Response& response) const;

 private:
  const std::string* allowed_origin(const Request& request) const;
  bool known_host(std::string_view host) const;
  bool knows_key(const Request& request) const;
};

bool is_loopback(std::string_view host);  // a name or an address, without a port

}  // namespace fovea::http
