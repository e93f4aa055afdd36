#pragma once

#include <string>

#include "serve/request/request.h"

namespace fovea::serve {

// Returns the messages of Ollama's API in the form of OpenAI's: roles in lower case, images as
// parts, calls with ids, which the messages of tools refer to. Throws ApiError, which names the
// member, if one has another type.
Json openai_messages(const Json& messages);

// Returns a message of the user with images in base64.
Json message_with_images(const std::string& text, const Json& images);

}  // namespace fovea::serve
