#include "http/request_head.h"

#include <algorithm>
#include <charconv>

#include "fovea/core/excerpt.h"
#include "http/header_text.h"

namespace fovea::http {
namespace {

// Some clients send an empty line after a body.
constexpr int kEmptyLines = 8;

[[noreturn]] void refuse(int status, std::string message) {
  throw Refusal{status, std::move(message)};
}

// Removes the first line from `rest` and returns it without CR LF; returns nothing while it is
// incomplete.
std::optional<std::string_view> take_line(std::string_view& rest, size_t most, int status,
                                          const char* what) {
  const size_t end = rest.find('\n');
  if (std::min(end, rest.size()) > most + 1) {
    refuse(status, std::string(what) + ": longer than " + std::to_string(most) + " bytes");
  }
  if (end == std::string_view::npos) return std::nullopt;
  if (end == 0 || rest[end - 1] != '\r') refuse(400, "a line ends without CR LF");
  const std::string_view line = rest.substr(0, end - 1);
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
      refuse(400, std::string(what) + ": contains a control character");
    }
  }
  rest.remove_prefix(end + 1);
  return line;
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string decoded(std::string_view text, bool form, const std::string& what) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) refuse(400, what + ": '%' without two hexadecimal digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += form && text[i] == '+' ? ' ' : text[i];
    }
  }
  if (out.find('\0') != std::string::npos) refuse(400, what + ": contains a NUL");
  return out;
}

// Returns the path of a target in absolute form, as proxies send it. Its authority replaces Host
// (RFC 9112, 3.2.2).
std::string_view without_authority(std::string_view target, Request& request) {
  constexpr std::string_view kScheme = "http://";
  if (lower(target.substr(0, kScheme.size())) != kScheme) return target;
  target.remove_prefix(kScheme.size());
  const size_t end = std::min(target.find_first_of("/?"), target.size());
  request.authority = target.substr(0, end);
  if (request.authority.empty()) refuse(400, "request target: has no host");
  if (request.authority.find('@') != std::string::npos)
    refuse(400, "request target: has a user name; expected http://HOST/PATH");
  return end < target.size() && target[end] == '/' ? target.substr(end) : "/";
}

void read_target(std::string_view target, Request& request) {
  if (target == "*" && request.method == "OPTIONS") {
    request.path = "*";
    return;
  }
  target = without_authority(target, request);
  if (target.empty() || target[0] != '/') refuse(400, "request target: expected a path");
  for (const char c : target) {
    if (static_cast<unsigned char>(c) >= 0x80) refuse(400, "request target: not ASCII");
  }
  target = target.substr(0, target.find('#'));
  const size_t mark = std::min(target.find('?'), target.size());
  request.path = decoded(target.substr(0, mark), false, "request target");
  request.query = form_values(target.substr(std::min(mark + 1, target.size())), "request target");
}

void read_request_line(std::string_view line, Request& request) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    refuse(400, "request line: expected a method, a path and HTTP/1.1");
  }
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method) || target.find_first_of(" \t") != std::string_view::npos) {
    refuse(400, "request line: expected a method, a path and HTTP/1.1");
  }
  const bool numbered = version.size() == 8 && version.substr(0, 5) == "HTTP/" &&
                        is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
  if (!numbered) refuse(400, "request line: expected a method, a path and HTTP/1.1");
  if (version[5] != '1' || version[7] > '1') refuse(505, "expected HTTP/1.1 or HTTP/1.0");
  request.minor = version[7] - '0';
  request.method = method;
  read_target(target, request);
}

void read_header(std::string_view line, Request& request) {
  if (line[0] == ' ' || line[0] == '\t') refuse(400, "header: folded lines are not accepted");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    refuse(400, "header: expected \"Name: value\"");
  }
  request.headers.emplace_back(lower(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
}

// Returns whether a comma-separated list, such as the value of Connection, contains `word`.
bool lists(std::string_view values, std::string_view word) {
  while (!values.empty()) {
    const size_t end = std::min(values.find(','), values.size());
    if (lower(trimmed(values.substr(0, end))) == word) return true;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return false;
}

void read_framing(RequestHead& head) {
  const Request& request = head.request;
  if (const std::string_view coding = request.header("content-encoding");
      !coding.empty() && lower(coding) != "identity")
    refuse(415, "Content-Encoding: " + excerpt(coding, 40) + " is not supported; expected none");
  int lengths = 0, codings = 0, hosts = 0;
  for (const auto& [name, value] : request.headers) {
    lengths += name == "content-length";
    codings += name == "transfer-encoding";
    hosts += name == "host";
  }
  if (hosts > 1 || (hosts == 0 && request.minor == 1)) refuse(400, "Host: expected exactly one");
  if (lengths + codings > 1) refuse(400, "the length of the body is given more than once");
  if (codings == 1) {
    if (request.minor == 0) refuse(400, "Transfer-Encoding: not part of HTTP/1.0");
    if (lower(request.header("transfer-encoding")) != "chunked") {
      refuse(400, "Transfer-Encoding: expected chunked alone");
    }
    head.chunked = true;
  }
  if (lengths == 1) {
    const std::string_view text = request.header("content-length");
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), head.body_bytes);
    if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
      refuse(400, "Content-Length: expected an integer");
    }
    if (error != std::errc() || end != text.data() + text.size()) {
      refuse(413, "Content-Length: too large");
    }
  }
}

void read_connection(RequestHead& head) {
  const Request& request = head.request;
  const std::string_view connection = request.header("connection");
  head.keep_alive =
      request.minor == 1 ? !lists(connection, "close") : lists(connection, "keep-alive");
  const std::string expects = lower(request.header("expect"));
  if (expects.empty()) return;
  if (expects != "100-continue") refuse(417, "Expect: expected 100-continue");
  head.expects_continue = request.minor == 1;
}

}  // namespace

std::map<std::string, std::string> form_values(std::string_view text, const std::string& what) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    if (!pair.empty()) {
      values[decoded(pair.substr(0, equals), true, what)] =
          decoded(pair.substr(std::min(equals + 1, pair.size())), true, what);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values;
}

std::optional<RequestHead> read_head(std::string_view bytes, const Limits& limits) {
  RequestHead head;
  std::string_view rest = bytes;
  // Skips empty lines (RFC 9112, 2.2). The head is parsed from its start for each piece that
  // arrives, so many empty lines would take quadratic time.
  for (int lines = 0; rest.substr(0, 2) == "\r\n"; rest.remove_prefix(2)) {
    if (++lines > kEmptyLines) refuse(400, "request line: too many empty lines before it");
  }
  const auto line = take_line(rest, limits.request_line, 414, "request line");
  if (!line) return std::nullopt;
  read_request_line(*line, head.request);
  const size_t headers_begin = bytes.size() - rest.size();
  while (true) {
    if (bytes.size() - rest.size() - headers_begin > limits.header_bytes) {
      refuse(431, "headers: longer than " + std::to_string(limits.header_bytes) + " bytes");
    }
    const auto header = take_line(rest, limits.header_line, 431, "header");
    if (!header) return std::nullopt;
    if (header->empty()) break;
    read_header(*header, head.request);
    if (head.request.headers.size() > limits.headers) {
      refuse(431, "headers: more than " + std::to_string(limits.headers));
    }
  }
  head.bytes = bytes.size() - rest.size();
  if (!head.request.authority.empty())
    for (auto& [name, value] : head.request.headers)
      if (name == "host") value = head.request.authority;
  read_framing(head);
  read_connection(head);
  return head;
}

}  // namespace fovea::http
