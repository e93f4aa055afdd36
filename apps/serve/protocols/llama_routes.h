#pragma once

#include "http/router.h"
#include "serve/routes/api.h"

namespace fovea::serve {

// Adds the routes of llama.cpp's server that OpenAI's API lacks: /completion, /infill, /embedding,
// /embeddings, /apply-template, /props, /slots and /lora-adapters. `api` must outlive the router.
void add_llama_routes(http::Router& router, Api& api);

}  // namespace fovea::serve
