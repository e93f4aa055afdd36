#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::http {

// One part of a body of type multipart/form-data (RFC 7578).
struct FormPart {
  std::string name;
  std::optional<std::string> filename;  // as sent by the client: a label, never a path
  std::string_view content;             // refers to the body
};

// Returns the parts of a body; `content_type` is the value of its header. Throws Refusal (400) if
// the boundary is missing or malformed, a part has no name or headers of more than 4 KiB, there are
// more than 16 parts, or the last boundary is missing.
std::vector<FormPart> form_parts(std::string_view content_type, std::string_view body);

}  // namespace fovea::http
