#include "cli/page_server.h"

#include <fmt/format.h>

#include <chrono>

#include "inspector/mount.h"

namespace fovea::cli {
namespace {

http::Router router_for(inspector::Routes& routes) {
  http::Router router;
  inspector::mount(router, "/", routes);
  return router;
}

http::ServerOptions options_for(int64_t port) {
  http::ServerOptions options;
  options.port = static_cast<uint16_t>(port);
  return options;
}

}  // namespace

PageServer::PageServer(std::vector<std::string> folders, int64_t port,
                       std::vector<model::AdapterUse> adapters, std::string picture)
    : routes_(std::move(folders), std::move(adapters)),
      server_(router_for(routes_), options_for(port)) {
  routes_.begin_with(std::move(picture));
  server_.start();
}

PageServer::~PageServer() { server_.stop(std::chrono::seconds(1)); }

std::string PageServer::address() const {
  return fmt::format("http://127.0.0.1:{}/", server_.port());
}

}  // namespace fovea::cli
