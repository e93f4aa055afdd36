#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fovea::http {

// The grammar of headers (RFC 9110, 5.6).

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Returns whether the text is a token, such as a method or a header's name.
bool is_token(std::string_view text);
std::string lower(std::string_view text);
std::string_view trimmed(std::string_view text);  // without spaces and tabs at both ends

// A value with parameters, such as `form-data; name="file"; filename="chats.jsonl"`.
struct HeaderValue {
  std::string value;                              // in lower case: "form-data"
  std::map<std::string, std::string> parameters;  // names in lower case; unquoted values
};
// Throws a Refusal (400) that names `what` if a parameter is malformed or occurs twice.
HeaderValue header_value(std::string_view text, const std::string& what);

}  // namespace fovea::http
