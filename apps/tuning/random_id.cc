#include "tuning/random_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace fovea::tuning {
namespace {

constexpr size_t kDigits = 24;

}  // namespace

std::string random_id(std::string_view prefix) {
  std::random_device random;
  std::string id(prefix);
  for (size_t i = 0; i < kDigits / 8; ++i) id += fmt::format("{:08x}", random());
  return id;
}

bool is_id(std::string_view id, std::string_view prefix) {
  return id.size() == prefix.size() + kDigits && id.substr(0, prefix.size()) == prefix &&
         std::all_of(id.begin() + static_cast<std::ptrdiff_t>(prefix.size()), id.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace fovea::tuning
