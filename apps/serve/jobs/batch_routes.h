#pragma once

#include "http/router.h"
#include "serve/jobs/batches.h"

namespace fovea::serve {

// Adds the routes of batches, in OpenAI's formats. `batches` must outlive the router.
void add_batch_routes(http::Router& router, Batches& batches);

}  // namespace fovea::serve
