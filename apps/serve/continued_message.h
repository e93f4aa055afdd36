#pragma once

#include <string>

#include "serve/request.h"

namespace fovea::serve {

// A chat whose last message is continued is rendered with a mark at the end of this message, and
// cut there. Throws ApiError if the last message is not a text of the assistant.
void mark_end(Json& messages);

// Returns the rendered text before the mark. Throws ApiError if the template does not show it.
std::string until_end(std::string text);

}  // namespace fovea::serve
