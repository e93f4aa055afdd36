#pragma once

#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "http/router.h"
#include "serve/models/metrics.h"
#include "serve/models/model_loader.h"
#include "serve/models/served_model.h"
#include "serve/request/fields.h"
#include "serve/routes/handlers.h"
#include "serve/routes/readiness.h"

namespace fovea::serve {

// What the options of the program allow. Set it before requests arrive.
struct ApiOptions {
  bool any_model = false;         // any name is that of the only model
  bool allow_pull = false;        // requests may fetch models from the Hub
  bool lists_models = true;       // GET /models lists the served models
  ModelLoader* loader = nullptr;  // of models that requests name; null: there are no others
  // The id of an HTTP request is the identity of its response: see GenerationRequest.
  bool stable = false;
};

// What the routes of all protocols share: the models, and how a request is read.
class Api {
 public:
  using Models = ModelList::Models;
  using Able = bool (*)(const ServedModel& model);
  // A request, and the model that it names.
  template <class Request>
  struct Read {
    std::shared_ptr<ServedModel> model;
    Request request;
  };
  explicit Api(Models models) : list_(std::move(models)) {}
  void add(std::shared_ptr<ServedModel> model) { list_.add(std::move(model)); }
  Models models() const { return list_.all(); }
  ModelList& list() const { return list_; }
  Metrics& metrics() { return metrics_; }
  std::atomic<Readiness>& readiness() { return readiness_; }
  ApiOptions& options() { return options_; }
  const ApiOptions& options() const { return options_; }
  // `warn` receives one line for each field of requests that the server ignores, once per field.
  // Set it before requests arrive.
  void set_warn(std::function<void(const std::string&)> warn) { warn_ = std::move(warn); }
  void warn_once(const std::string& line) const;

  // Returns the model that the request names; without a name, the first model with the required
  // capability, or else the first model. Throws MustLoad if the model is not in memory, and
  // ApiError 404 if the name is unknown.
  std::shared_ptr<ServedModel> model(const Json& body, Able able) const;
  // Returns whether the name is that of a model that is not in memory, but can be loaded.
  bool is_unloaded(const std::string& name) const;
  std::vector<std::string> unloaded() const;  // the names of these models
  // Throws MustLoad for such a model.
  void require_loaded(const std::string& name) const;
  // Reads the body of a route. `prepare(request, model)` sets defaults other than the struct's.
  template <class Request, class Prepare>
  Read<Request> read(const http::Request& request, Able able, const Prepare& prepare) const {
    Read<Request> read = read_body<Request>(parse_body(request.body), able, prepare);
    if constexpr (std::derived_from<Request, GenerationRequest>)
      if (options_.stable) read.request.identity = request.id;
    return read;
  }
  template <class Request, class Prepare>
  Read<Request> read_body(const Json& body, Able able, const Prepare& prepare) const {
    Read<Request> read{model(body, able), {}};
    prepare(read.request, *read.model);
    read_fields(body, read.model->facts.vocabulary, read.request);
    check_unknown_fields(body, Request::kPath);  // after a missing field is named
    return read;
  }
  template <class Request>
  Read<Request> read(const http::Request& request, Able able) const {
    return read<Request>(request, able, [](Request&, ServedModel&) {});
  }

 private:
  // Refuses unknown fields of a route that restrict the response, and reports the others.
  void check_unknown_fields(const Json& body, const char* path) const;

  std::function<void(const std::string&)> warn_;
  mutable std::mutex mutex_;  // of warned_
  mutable std::set<std::string> warned_;
  mutable ModelList list_;  // a request changes which model was used last
  ApiOptions options_;
  Metrics metrics_;
  std::atomic<Readiness> readiness_{Readiness::ready};
};

// A function that responds to the requests of a route.
using Answer = void (*)(Api& api, const http::Request& request,
                        const std::shared_ptr<http::Exchange>& exchange);
// Returns a route as guarded_route(). `most_body`: maximum bytes of a body; 0 = those of the
// server. `api` must outlive the route.
http::Route api_route(Api& api, const char* method, const char* path, Answer answer,
                      ErrorShape shape = ErrorShape::openai, size_t most_body = 0);

}  // namespace fovea::serve
