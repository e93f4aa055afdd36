#pragma once

#include <functional>
#include <memory>

#include "http/router.h"
#include "serve/request/api_error.h"
#include "serve/request/request.h"

namespace fovea::serve {

http::Response json_response(const Json& json);
// A handler of a route. Until it has found its model, it must not move from the request, with which
// it is called again after MustLoad.
using RequestHandler =
    std::function<void(http::Request& request, const std::shared_ptr<http::Exchange>& exchange)>;
// Returns a route that needs the key. Exceptions of the handler become errors in this format,
// except that MustLoad loads a model first.
http::Route guarded_route(const char* method, const char* path, RequestHandler handler,
                          ErrorShape shape = ErrorShape::openai);

}  // namespace fovea::serve
