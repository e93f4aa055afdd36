#pragma once

#include <exception>
#include <string>

#include "fovea/error.h"
#include "http/http.h"
#include "serve/request.h"

namespace fovea::serve {

// How the clients of a route read errors.
enum class ErrorShape {
  openai,  // {"error": {"message", "type", "param", "code"}}
  // text-embeddings-inference: {"error", "error_type"}, with 422 for what does not validate
  embeddings,
  translate,  // LibreTranslate: {"error"}
};

Response error_response(ErrorShape shape, const ApiError& error);
// What an exception of the API or of the library means to a client.
ApiError api_error(const std::exception_ptr& thrown);
int status_of(ErrorKind kind);
// 429 with Retry-After, by error_response.
ApiError too_busy();

}  // namespace fovea::serve
