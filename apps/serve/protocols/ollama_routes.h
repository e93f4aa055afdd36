#pragma once

#include "http/router.h"
#include "serve/routes/api.h"

namespace fovea::serve {

// Adds the routes of Ollama's API that compute: /api/chat, /api/generate, /api/embed and
// /api/embeddings. `most_chat`: as Api::router(). `api` must outlive the router.
void add_ollama_routes(http::Router& router, Api& api, size_t most_chat);

// Returns the name in a body, "model" or the older "name", as the server has it: with or without
// ":latest". Empty if no model has the name.
std::string ollama_name(const Api& api, const Json& body);

}  // namespace fovea::serve
