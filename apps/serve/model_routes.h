#pragma once

#include "http/router.h"
#include "serve/models/model_loader.h"

namespace fovea::serve {

// Adds GET /models, POST /models/load and POST /models/unload. `loader` must outlive the router.
void add_model_routes(http::Router& router, ModelLoader& loader);

}  // namespace fovea::serve
