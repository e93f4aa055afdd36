#include "serve/page.h"

namespace fovea::serve {
namespace {

// The page may load only files of this server, and no other page may embed it in a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string type_of(const std::string& name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8";
}

}  // namespace

void add_page(http::Router& router) {
  for (const auto& [name, bytes] : page_files()) {
    const http::Handler handler = [name = name, bytes = bytes](
                                      const http::Request&,
                                      const std::shared_ptr<http::Exchange>& exchange) {
      http::Response response{200, type_of(name), {}, std::string(bytes)};
      response.headers = {{"Content-Security-Policy", kPolicy},
                          {"X-Content-Type-Options", "nosniff"},
                          {"Referrer-Policy", "no-referrer"},
                          {"Cache-Control", "no-cache"}};
      exchange->send(std::move(response));
    };
    router.add({"GET", name == "index.html" ? "/" : "/" + name, false, handler, true});
  }
}

}  // namespace fovea::serve
