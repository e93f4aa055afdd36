#include "http/header_text.h"

#include <algorithm>

#include "http/request_head.h"

namespace fovea::http {
namespace {

// Removes a quoted string from the start of `rest` and returns its characters.
std::string take_quoted(std::string_view& rest, const std::string& what) {
  std::string out;
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return out;
    }
    if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
    out += rest[i];
  }
  throw Refusal{400, what + ": a quoted parameter has no end"};
}

// Removes "; name=value" from the start of `rest` and adds it to `found`.
void take_parameter(std::string_view& rest, const std::string& what, HeaderValue& found) {
  const Refusal malformed{400, what + ": expected \"; name=value\" for each parameter"};
  if (rest.front() != ';') throw malformed;
  rest.remove_prefix(1);
  const size_t equals = rest.find('=');
  if (equals == std::string_view::npos) throw malformed;
  const std::string name = lower(trimmed(rest.substr(0, equals)));
  rest.remove_prefix(equals + 1);
  std::string value;
  if (!rest.empty() && rest.front() == '"') {
    value = take_quoted(rest, what);
  } else {
    const size_t end = std::min(rest.find(';'), rest.size());
    value = trimmed(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  if (!is_token(name)) throw malformed;
  if (!found.parameters.emplace(name, std::move(value)).second)
    throw Refusal{400, what + ": a parameter occurs twice"};
  rest = trimmed(rest);
}

}  // namespace

bool is_token(std::string_view text) {
  const auto part = [](char c) {
    return is_digit(c) || is_letter(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), part);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

HeaderValue header_value(std::string_view text, const std::string& what) {
  const size_t end = std::min(text.find(';'), text.size());
  HeaderValue found{lower(trimmed(text.substr(0, end))), {}};
  std::string_view rest = text.substr(end);
  while (!rest.empty()) take_parameter(rest, what, found);
  return found;
}

}  // namespace fovea::http
