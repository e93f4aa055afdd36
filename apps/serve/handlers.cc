#include "serve/handlers.h"

namespace fovea::serve {

http::Response json_response(const Json& json) {
  http::Response response;
  response.body = json_line(json) + "\n";
  return response;
}

http::Route guarded_route(const char* method, const char* path, http::Handler handler,
                          ErrorShape shape) {
  http::Route route = {method, path};
  route.handler = [handler = std::move(handler), shape](
                      http::Request request, const std::shared_ptr<http::Exchange>& exchange) {
    try {
      handler(std::move(request), exchange);
    } catch (...) {
      exchange->send(error_response(shape, api_error(std::current_exception())));
    }
  };
  route.format_error = error_format(shape);
  return route;
}

}  // namespace fovea::serve
