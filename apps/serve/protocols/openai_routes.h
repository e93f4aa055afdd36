#pragma once

#include <cstddef>

#include "serve/routes/api.h"

namespace fovea::serve {

// Adds the routes of OpenAI's API for models, completions, chats and embeddings. `most_chat`:
// maximum bytes of a chat; 0 = those of the server. `api` must outlive the router.
void add_openai_routes(http::Router& router, Api& api, size_t most_chat);

}  // namespace fovea::serve
