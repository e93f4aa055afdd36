#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"

namespace fovea::http {

// Bytes that a client may send; more is refused with 413, 414 or 431.
struct Limits {
  size_t request_line = 8 << 10;
  size_t header_line = 8 << 10;
  size_t header_bytes = 32 << 10;
  size_t headers = 100;
  size_t body = 2'000'000;
};

// How a request fails before any handler sees it.
struct Refusal {
  int status = 400;
  std::string message;
};

struct RequestHead {
  Request request;
  size_t bytes = 0;       // of the head, its empty line included
  size_t body_bytes = 0;  // Content-Length
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;
};

// Reads the head of an HTTP/1.x request (RFC 9112). Strict where readings of servers have differed
// (folded lines, bare line feeds, two lengths, spaces about names): what is not plain is refused,
// so that no part of a body is ever taken for a request. Nothing while the head is not yet whole;
// limits and lines are checked as they arrive. Throws Refusal.
std::optional<RequestHead> read_head(std::string_view bytes, const Limits& limits);

// The names and values of "a=1&b=2", as a query has them and a form. Throws Refusal that names
// `what`.
std::map<std::string, std::string> form_values(std::string_view text, const std::string& what);

}  // namespace fovea::http
