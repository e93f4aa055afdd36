#include "serve/routes/readiness.h"

#include "serve/request/api_error.h"
#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

constexpr const char* kRetryAfter = "1";  // seconds

const char* name_of(Readiness readiness) {
  switch (readiness) {
    case Readiness::loading: return "loading";
    case Readiness::draining: return "draining";
    default: return "ok";
  }
}

http::Response health(Readiness readiness) {
  http::Response response = json_response({{"status", name_of(readiness)}});
  if (readiness == Readiness::ready) return response;
  response.status = 503;
  response.headers.emplace_back("Retry-After", kRetryAfter);
  return response;
}

}  // namespace

void add_health_routes(http::Router& router, const std::atomic<Readiness>& readiness) {
  const http::Handler handler = [&readiness](const http::Request&, const ExchangePtr& exchange) {
    exchange->send(health(readiness));
  };
  for (const char* path : {"/health", "/v1/health"})
    router.add({"GET", path, false, handler, true});
}

http::Router loading_router(const std::atomic<Readiness>& readiness) {
  http::Router router;
  add_health_routes(router, readiness);
  const http::Handler refuse = [](const http::Request&, const ExchangePtr& exchange) {
    http::Response response = error_format(ErrorShape::openai)(
        {503, "the models are being loaded; try again when /health says 200", "loading"});
    response.headers.emplace_back("Retry-After", kRetryAfter);
    exchange->send(std::move(response));
  };
  for (const char* method : {"GET", "POST", "DELETE"})
    for (const char* path : {"/", "/{rest}"}) router.add({method, path, true, refuse, true});
  return router;
}

}  // namespace fovea::serve
