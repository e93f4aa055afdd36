#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/router.h"
#include "serve/api.h"

namespace fovea::serve {

// The models in a folder, which requests may load and unload.
struct ModelFolder {
  std::string folder;
  // Opens a model of the folder: the model, followed by others that share its weights.
  std::function<Api::Models(const std::string& name, const std::string& path)> open;
};

// Adds GET /models, POST /models/load and POST /models/unload. `api` and `folder` must outlive the
// router.
void add_model_routes(http::Router& router, Api& api, const ModelFolder& folder);

}  // namespace fovea::serve
