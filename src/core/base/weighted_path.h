#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace fovea {

// Splits "path:weight", such as "chats.jsonl:0.5", at the last colon. Without a number after it,
// the whole text is the path.
inline std::pair<std::string, std::optional<double>> split_weight(const std::string& given) {
  const size_t colon = given.rfind(':');
  if (colon == given.npos) return {given, std::nullopt};
  double weight = 0;
  const char* const last = given.data() + given.size();
  const auto [end, error] = std::from_chars(given.data() + colon + 1, last, weight);
  if (error != std::errc() || end != last) return {given, std::nullopt};
  return {given.substr(0, colon), weight};
}

}  // namespace fovea
