#include "serve/request/data_url.h"

#include <algorithm>

#include "base/base64.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kScheme = "data:", kBase64 = ";base64";

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view given, std::string_view word) {
  return std::equal(given.begin(), given.end(), word.begin(), word.end(),
                    [](char g, char w) { return small(g) == w; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = small(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return bytes;
}

// Returns base64 as the decoder expects it: the usual alphabet, with padding.
std::string usual_base64(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  if (text.size() % 4 != 0 && !text.ends_with('=')) text.append(4 - text.size() % 4, '=');
  return text;
}

}  // namespace

bool is_data_url(std::string_view url) { return same_word(url.substr(0, kScheme.size()), kScheme); }

std::optional<std::string> data_url_bytes(std::string_view url) {
  const size_t comma = url.find(',');
  if (!is_data_url(url) || comma == std::string_view::npos) return std::nullopt;
  std::string_view head = url.substr(0, comma);
  while (head.ends_with(' ')) head.remove_suffix(1);
  auto data = unescaped(url.substr(comma + 1));
  const size_t length = std::min(head.size(), kBase64.size());
  if (!data || !same_word(head.substr(head.size() - length), kBase64)) return data;
  return from_base64(usual_base64(std::move(*data)));
}

}  // namespace fovea::serve
