#include "base/base64.h"

#include <array>
#include <cstdint>

namespace fovea {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int16_t, 256> make_values() {
  std::array<int16_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < digits.size(); ++i)
    values[static_cast<uint8_t>(digits[i])] = static_cast<int16_t>(i);
  return values;
}
constexpr std::array<int16_t, 256> values = make_values();

}  // namespace

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  for (int padding = 0; padding < 2 && !text.empty() && text.back() == '='; ++padding)
    text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = values[static_cast<uint8_t>(c)];
    if (value < 0) return {};
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count));
    }
  }
  return bytes;
}

}  // namespace fovea
