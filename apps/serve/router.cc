#include "serve/router.h"

#include <algorithm>

#include "fovea/core/machine.h"
#include "serve/page.h"
#include "serve/protocols/anthropic.h"
#include "serve/protocols/encoder_routes.h"
#include "serve/protocols/llama_routes.h"
#include "serve/protocols/ollama_models.h"
#include "serve/protocols/ollama_routes.h"
#include "serve/protocols/openai_routes.h"
#include "serve/protocols/responses.h"
#include "serve/protocols/translation.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

// The page may load only files of this server, and no other page may embed it in a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string type_of(const std::string& name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return name.ends_with(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8";
}

// Clients of Ollama ask for "/" to find whether the server runs, and accept JSON only.
bool accepts_html(std::string_view accept) {
  if (accept.empty()) return true;
  for (const char* type : {"text/html", "text/*", "*/*"})
    if (accept.find(type) != accept.npos) return true;
  return false;
}

// Adds the routes of the page: "/", "/chat.js" and "/chat.css". They need no key, since they are
// the same for everybody; the page asks for the key.
void add_page(http::Router& router) {
  for (const auto& [name, bytes] : page_files()) {
    const http::Handler handler = [name, bytes](const http::Request& request,
                                                const std::shared_ptr<http::Exchange>& exchange) {
      if (name == "index.html" && !accepts_html(request.header("accept")))
        return exchange->send({200, "text/plain; charset=utf-8", {}, "Ollama is running"});
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

// Adds the routes of the server's state, which load balancers and dashboards read.
void add_state_routes(http::Router& router, Api& api) {
  add_health_routes(router, api.readiness());
  const http::Handler program = [](const http::Request&, const ExchangePtr& exchange) {
    exchange->send(json_response({{"version", version()}}));
  };
  router.add({"GET", "/version", true, program, true});
  const http::Handler metrics = [&api](const http::Request&, const ExchangePtr& exchange) {
    exchange->send(
        {200, "text/plain; version=0.0.4; charset=utf-8", {}, api.metrics().text(api.models())});
  };
  router.add({"GET", "/metrics", true, metrics, true});
}

bool reads_images(const std::shared_ptr<ServedModel>& model) {
  const auto* const generator = model->find<TextGenerator>();
  return generator != nullptr && generator->image_prompt;
}

}  // namespace

http::Router all_routes(Api& api, size_t most_chat) {
  http::Router router;
  if (api.options().loader == nullptr && !std::ranges::any_of(api.models(), reads_images))
    most_chat = 0;  // as every other request
  add_state_routes(router, api);
  add_page(router);
  add_openai_routes(router, api, most_chat);
  add_encoder_routes(router, api);
  add_translation_routes(router, api);
  add_llama_routes(router, api);
  add_responses_route(router, api, most_chat);
  add_anthropic_routes(router, api, most_chat);
  add_ollama_routes(router, api, most_chat);
  add_ollama_model_routes(router, api);
  return router;
}

}  // namespace fovea::serve
