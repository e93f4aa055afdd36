#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"

namespace fovea::http {

// Limits on the size of a request, in bytes; exceeding them gives status 413, 414 or 431.
struct Limits {
  size_t request_line = 8 << 10;
  size_t header_line = 8 << 10;
  size_t header_bytes = 32 << 10;
  size_t headers = 100;  // number of headers
  size_t body = 2'000'000;
};

struct RequestHead {
  Request request;
  size_t bytes = 0;       // size of the head, including its empty line
  size_t body_bytes = 0;  // Content-Length
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;
};

// Parses the head of an HTTP/1.x request (RFC 9112). Refuses everything that servers interpret
// differently (folded lines, bare line feeds, two lengths, spaces around names), so that no part of
// a body can be mistaken for a request. Returns nothing while the head is incomplete, but checks
// the lines and limits of the bytes that have arrived. Throws Refusal.
std::optional<RequestHead> read_head(std::string_view bytes, const Limits& limits);

// Returns the names and values of a query or a form, such as "a=1&b=2". Throws a Refusal that names
// `what` if a percent-escape is invalid or a name or value contains a NUL.
std::map<std::string, std::string> form_values(std::string_view text, const std::string& what);

}  // namespace fovea::http
