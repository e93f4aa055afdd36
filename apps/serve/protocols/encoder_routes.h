#pragma once

#include "serve/routes/api.h"

namespace fovea::serve {

// Adds the routes of text-embeddings-inference, and those of vLLM, Cohere and Jina for scores and
// labels: vectors, ranks, labels and tokens. `api` must outlive the router.
void add_encoder_routes(http::Router& router, Api& api);

}  // namespace fovea::serve
