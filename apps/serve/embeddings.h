#pragma once

#include <string>

#include "fovea/embed.h"
#include "serve/request.h"

namespace fovea::serve {

// The answer of /v1/embeddings. Throws ApiError for texts without a token.
Json embeddings_json(const ApiRequest& request, const Embedder& embedder, const std::string& name);

std::string base64(const std::string& bytes);

}  // namespace fovea::serve
