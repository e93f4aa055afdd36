#pragma once

#include <string>
#include <string_view>

namespace fovea::text {

// A position in a schema; converted to text only for errors.
struct SchemaLocation {
  const SchemaLocation* above;
  std::string_view name;
};

// Returns the location as one short line, for any depth and any names.
std::string text_of(const SchemaLocation& location);

// Throw InvalidArgument or Unsupported; the message begins with the location.
[[noreturn]] void refuse_schema(const SchemaLocation& location, const std::string& why);
[[noreturn]] void refuse_keyword(const SchemaLocation& location, const std::string& why);

}  // namespace fovea::text
