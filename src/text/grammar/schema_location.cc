#include "grammar/schema_location.h"

#include <vector>

#include "base/error.h"
#include "fovea/core/excerpt.h"

namespace fovea::text {

std::string text_of(const SchemaLocation& location) {
  constexpr size_t kFirst = 2, kLast = 6, kMostOfName = 40;
  std::vector<std::string_view> names;
  for (const SchemaLocation* at = &location; at != nullptr; at = at->above)
    names.push_back(at->name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += '.';
    if (i == kFirst && names.size() > kFirst + kLast) {
      text += "..";
      i = names.size() - kLast - 1;
    } else {
      text += excerpt(names[names.size() - 1 - i], kMostOfName);
    }
  }
  return text;
}

void refuse_schema(const SchemaLocation& location, const std::string& why) {
  fail(ErrorKind::InvalidArgument, "{}: {}", text_of(location), why);
}

void refuse_keyword(const SchemaLocation& location, const std::string& why) {
  fail(ErrorKind::Unsupported, "{}: {}", text_of(location), why);
}

}  // namespace fovea::text
