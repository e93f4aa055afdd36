#pragma once

#include "serve/request/fields.h"

namespace fovea::serve {

// Refuses unknown fields whose loss the client would not notice: those of other servers that
// restrict the response, and names that look like a misspelt field. Throws ApiError, which names
// both. Other unknown fields are harmless, since clients send many.
void check_unknown(const Json& body, const std::vector<FieldInfo>& fields);

}  // namespace fovea::serve
