#pragma once

#include <string>
#include <string_view>

namespace fovea::text {

// A position in a schema; converted to text only for errors.
struct Place {
  const Place* above;
  std::string_view name;
};

// Returns the place as one short line, for any depth and any names.
std::string text_of(const Place& place);

// Throw InvalidArgument or Unsupported; the message begins with the place.
[[noreturn]] void refuse_schema(const Place& place, const std::string& why);
[[noreturn]] void refuse_keyword(const Place& place, const std::string& why);

}  // namespace fovea::text
