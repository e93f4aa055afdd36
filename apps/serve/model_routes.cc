#include "serve/model_routes.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "base/stop.h"
#include "http/handler_pool.h"
#include "serve/handlers.h"

namespace fovea::serve {
namespace {

// Returns the models of a folder by name: directories with a config.json, and .gguf files.
std::map<std::string, std::string> models_in(const std::string& folder) {
  std::map<std::string, std::string> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".gguf")
      found[path.stem()] = path;
    else if (std::filesystem::exists(path / "config.json", failed))
      found[path.filename()] = path;
  }
  return found;
}

bool is_served(const Api& api, const std::string& name) {
  for (const auto& model : api.models())
    if (model->facts.name == name) return true;
  return false;
}

std::string name_in(const http::Request& request) {
  const Json body = parse_body(request.body);
  const auto name = body.find("model");
  if (name == body.end() || !name->is_string())
    throw ApiError{400, "model: missing; expected the name of a model", "model", "missing"};
  return *name;
}

Json state_json(const std::string& name, bool loaded) {
  return {{"id", name}, {"object", "model"}, {"status", loaded ? "loaded" : "unloaded"}};
}

Json list_json(const Api& api, const std::string& folder) {
  std::map<std::string, bool> states;
  for (const auto& [name, path] : models_in(folder)) states[name] = false;
  for (const auto& model : api.models()) states[model->facts.name] = true;
  Json data = Json::array();
  for (const auto& [name, loaded] : states) data.push_back(state_json(name, loaded));
  return {{"object", "list"}, {"data", data}};
}

void load(Api& api, const ModelFolder& folder, const std::string& name) {
  if (is_served(api, name)) return;
  const auto known = models_in(folder.folder);
  const auto found = known.find(name);
  if (found == known.end())
    throw ApiError{404,
                   "model: \"" + name + "\" is not in the folder of models; GET /models lists them",
                   "model", "model_not_found"};
  try {
    for (const auto& model : folder.open(name, found->second)) api.add(model);
  } catch (const Error& error) {
    throw without_folder(error, folder.folder);
  }
}

// Waits for the running requests of the model; new ones do not find it.
void unload(Api& api, const std::string& name) {
  constexpr auto kLongest = std::chrono::seconds(30);
  for (const auto& other : api.models())
    if (other->facts.parent == name)
      throw ApiError{409,
                     "model: \"" + name + "\" is the base of " + other->facts.name +
                         "; expected the adapter to be unloaded first",
                     "model", "model_in_use"};
  std::shared_ptr<ServedModel> model = api.remove(name);
  const auto start = std::chrono::steady_clock::now();
  const auto waits = [&] {
    if (model.use_count() == 1 || std::chrono::steady_clock::now() - start > kLongest) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return true;
  };
  try {
    while (waits()) stop_if_requested();
  } catch (...) {
    api.add(std::move(model));
    throw;
  }
  if (model.use_count() == 1) return;
  api.add(std::move(model));
  throw ApiError{409, "model: requests to \"" + name + "\" are still running; expected none",
                 "model", "model_in_use"};
}

}  // namespace

void add_model_routes(http::Router& router, Api& api, const ModelFolder& folder) {
  using ExchangePtr = std::shared_ptr<http::Exchange>;
  using Change = std::function<bool(const std::string& name)>;  // returns whether it is loaded now
  router.add(guarded_route("GET", "/models",
                           [&api, &folder](const http::Request&, const ExchangePtr& exchange) {
                             exchange->send(json_response(list_json(api, folder.folder)));
                           }));
  // One change at a time, on a thread of its own: reading a model, or waiting for the requests of
  // one, would keep a handler from other clients.
  constexpr size_t kMostWaiting = 16;
  const auto worker = std::make_shared<http::HandlerPool>(1, kMostWaiting);
  const auto add = [&router, worker](const char* path, const Change& change) {
    router.add(
        guarded_route("POST", path, [=](const http::Request& request, const ExchangePtr& exchange) {
          const auto work = [=, pool = worker.get(), name = name_in(request)] {
            const StopScope scope([&] { return exchange->gone() || pool->stopping(); });
            try {
              exchange->send(json_response(state_json(name, change(name))));
            } catch (...) {
              exchange->send(
                  error_response(ErrorShape::openai, api_error(std::current_exception())));
            }
          };
          if (!worker->run(work)) throw too_busy();
        }));
  };
  add("/models/load", [&api, &folder](const std::string& name) {
    load(api, folder, name);
    return true;
  });
  add("/models/unload", [&api](const std::string& name) {
    unload(api, name);
    return false;
  });
}

}  // namespace fovea::serve
