#include "serve/routes/handlers.h"

#include <utility>

#include "serve/models/model_loader.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

void respond(const RequestHandler& handler, ErrorShape shape, http::Request& request,
             const ExchangePtr& exchange);

// Calls the handler again on the thread of the loader, once the model is in memory.
void respond_later(const RequestHandler& handler, ErrorShape shape, http::Request& request,
                   const ExchangePtr& exchange, const MustLoad& missing) {
  const auto kept = std::make_shared<http::Request>(std::move(request));
  const RequestHandler load_and_handle = [missing, handler](http::Request& again,
                                                            const ExchangePtr& client) {
    missing.loader->load(missing.name, [&] { return client->gone(); });
    handler(again, client);
  };
  const auto work = [=] { respond(load_and_handle, shape, *kept, exchange); };
  if (!missing.loader->run(work)) exchange->send(error_response(shape, too_busy()));
}

void respond(const RequestHandler& handler, ErrorShape shape, http::Request& request,
             const ExchangePtr& exchange) {
  try {
    handler(request, exchange);
  } catch (const MustLoad& missing) {
    respond_later(handler, shape, request, exchange, missing);
  } catch (...) {
    exchange->send(error_response(shape, api_error(std::current_exception())));
  }
}

}  // namespace

http::Response json_response(const Json& json) {
  http::Response response;
  response.body = json_line(json) + "\n";
  return response;
}

http::Route guarded_route(const char* method, const char* path, RequestHandler handler,
                          ErrorShape shape) {
  http::Route route = {method, path};
  route.handler = [handler = std::move(handler), shape](http::Request request,
                                                        const ExchangePtr& exchange) {
    respond(handler, shape, request, exchange);
  };
  route.format_error = error_format(shape);
  return route;
}

}  // namespace fovea::serve
