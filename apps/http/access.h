#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"

namespace fovea::http {

// Compares two strings in a time that depends only on the length of `given`.
bool equal_in_constant_time(std::string_view given, std::string_view secret);

// Decides which requests are accepted. A web page in the user's browser must not reach a server on
// the loopback address through a host name that resolves to this address (Host) or from another
// origin (Origin, Sec-Fetch-Site).
struct Access {
  std::vector<std::string> keys;     // empty: no key is required
  std::vector<std::string> origins;  // origins whose pages may read responses; "*" = all
  bool loopback = true;              // the server listens on a loopback address
  std::string host;  // the host name or address given by the user; also accepted in Host

  // Returns why a request is refused; empty if it is accepted. `needs_key`: whether the route
  // requires the key.
  std::optional<Refusal> refuse(const Request& request, bool needs_key) const;
  // Adds the headers that a browser requires for an allowed origin.
  void add_cors_headers(const Request& request, Response& response) const;

 private:
  const std::string* allowed_origin(const Request& request) const;
  bool known_host(std::string_view host) const;
  bool knows_key(const Request& request) const;
};

bool is_loopback(std::string_view host);  // `host` is a name or an address, without a port

}  // namespace fovea::http
