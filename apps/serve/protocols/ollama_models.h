#pragma once

#include "http/router.h"
#include "serve/routes/api.h"

namespace fovea::serve {

// Adds the routes of Ollama's API about models: /api/tags, /api/show, /api/ps, /api/version and
// /api/pull, and those that are refused: /api/create, /api/copy, /api/delete, /api/push and
// /api/blobs. `api` must outlive the router.
void add_ollama_model_routes(http::Router& router, Api& api);

}  // namespace fovea::serve
