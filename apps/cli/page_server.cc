#include "cli/page_server.h"

#include <fmt/format.h>

#include <chrono>

namespace fovea::cli {
namespace {

// The page may load only files of this server, and only its own page, for the course, may embed it
// in a frame.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'self'; "
    "frame-ancestors 'self'";

void handle(inspector::Routes& routes, http::Request request, http::Exchange& exchange) {
  inspector::Response found = routes.respond(
      {request.method, request.rest, std::move(request.query), std::move(request.body)});
  http::Response response{found.status, std::move(found.type), {}, std::move(found.body)};
  response.headers = {{"Content-Security-Policy", kPagePolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"}};
  exchange.send(std::move(response));
}

// `routes` must outlive the router.
http::Router router_for(inspector::Routes& routes) {
  http::Router router;
  const http::Handler handler = [&routes](http::Request request,
                                          const std::shared_ptr<http::Exchange>& exchange) {
    handle(routes, std::move(request), *exchange);
  };
  router.add({"GET", "/", true, handler});
  http::Route image{
      "POST", std::string("/") + inspector::kImagePath, true,
      [&routes](http::Request request, const std::shared_ptr<http::Exchange>& exchange) {
        request.rest = inspector::kImagePath;
        handle(routes, std::move(request), *exchange);
      }};
  image.most_body = inspector::kMostImageBody;
  router.add(std::move(image));
  for (const char* method : {"GET", "POST"}) router.add({method, "/{rest}", true, handler});
  return router;
}

http::ServerOptions options_for(int64_t port) {
  http::ServerOptions options;
  options.port = static_cast<uint16_t>(port);
  return options;
}

}  // namespace

PageServer::PageServer(std::vector<std::string> folders, int64_t port,
                       std::vector<model::AdapterUse> adapters, std::string image)
    : routes_(std::move(folders), std::move(adapters)),
      server_(router_for(routes_), options_for(port)) {
  routes_.begin_with(std::move(image));
  server_.start();
}

PageServer::~PageServer() { server_.stop(std::chrono::seconds(1)); }

std::string PageServer::address() const {
  return fmt::format("http://127.0.0.1:{}/", server_.port());
}

}  // namespace fovea::cli
