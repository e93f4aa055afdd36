#pragma once

#include <string>
#include <string_view>

namespace fovea::tuning {

// Returns `prefix` followed by 24 random hexadecimal digits.
std::string random_id(std::string_view prefix);
// Returns whether random_id(prefix) may have made `id`.
bool is_id(std::string_view id, std::string_view prefix);

}  // namespace fovea::tuning
