#pragma once

#include "http/router.h"
#include "serve/api_error.h"
#include "serve/request.h"

namespace fovea::serve {

http::Response json_response(const Json& json);
// Returns a route that needs the key. Exceptions of the handler become errors in this format.
http::Route guarded_route(const char* method, const char* path, http::Handler handler,
                          ErrorShape shape = ErrorShape::openai);

}  // namespace fovea::serve
