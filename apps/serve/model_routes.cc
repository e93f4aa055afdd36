#include "serve/model_routes.h"

#include <functional>

#include "serve/routes/handlers.h"

namespace fovea::serve {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

std::string name_in(const http::Request& request) {
  const Json body = parse_body(request.body);
  const auto name = body.find("model");
  if (name == body.end() || !name->is_string())
    throw ApiError{400, "model: missing; expected the name of a model", "model", "missing"};
  return *name;
}

const char* name_of(ModelLoader::State state) {
  switch (state) {
    case ModelLoader::State::unloaded: return "unloaded";
    case ModelLoader::State::loading: return "loading";
    case ModelLoader::State::loaded: break;
  }
  return "loaded";
}

Json state_json(const std::string& name, ModelLoader::State state) {
  return {{"id", name}, {"object", "model"}, {"status", name_of(state)}};
}

Json list_json(const ModelLoader& loader) {
  Json data = Json::array();
  for (const auto& [name, state] : loader.states()) data.push_back(state_json(name, state));
  return {{"object", "list"}, {"data", data}};
}

}  // namespace

void add_model_routes(http::Router& router, ModelLoader& loader) {
  using State = ModelLoader::State;
  using Change = void (ModelLoader::*)(const std::string& name, const ModelLoader::Gone& gone);
  router.add(
      guarded_route("GET", "/models", [&loader](const http::Request&, const ExchangePtr& exchange) {
        exchange->send(json_response(list_json(loader)));
      }));
  const auto add = [&](const char* path, Change change, State state) {
    router.add(guarded_route(
        "POST", path, [=, &loader](const http::Request& request, const ExchangePtr& exchange) {
          const auto work = [=, &loader, name = name_in(request)] {
            try {
              (loader.*change)(name, [&] { return exchange->gone(); });
              exchange->send(json_response(state_json(name, state)));
            } catch (...) {
              exchange->send(
                  error_response(ErrorShape::openai, api_error(std::current_exception())));
            }
          };
          if (!loader.run(work)) throw too_busy();
        }));
  };
  add("/models/load", &ModelLoader::load, State::loaded);
  add("/models/unload", &ModelLoader::unload, State::unloaded);
}

}  // namespace fovea::serve
