#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/router.h"
#include "serve/metrics.h"
#include "serve/served_model.h"

namespace fovea::serve {

// OpenAI's API and its neighbours over some models. Handlers of the router refer to it.
class Api {
 public:
  explicit Api(std::vector<std::shared_ptr<ServedModel>> models);
  Router router();
  Metrics& metrics() { return metrics_; }

 private:
  using Answer = std::shared_ptr<Exchange>;
  using Answerer = void (Api::*)(const Request& request, const Answer& answer);
  using Able = bool (*)(const ServedModel& model);
  void list_models(const Request& request, const Answer& answer);
  void one_model(const Request& request, const Answer& answer);
  void complete(const Request& request, const Answer& answer);
  void chat(const Request& request, const Answer& answer);
  void openai_embeddings(const Request& request, const Answer& answer);
  void embed(const Request& request, const Answer& answer);
  void rerank(const Request& request, const Answer& answer);
  void translate(const Request& request, const Answer& answer);
  void languages(const Request& request, const Answer& answer);
  void tokenize(const Request& request, const Answer& answer);
  void detokenize(const Request& request, const Answer& answer);
  void generate(const Request& request, const Answer& answer, bool chat);

  // What a body of a route asks of which model; fields that it lacks are as `defaults` has them.
  struct Asked {
    std::shared_ptr<ServedModel> model;
    ApiRequest request;
  };
  using Defaults = std::function<ApiRequest(ServedModel& model)>;
  Asked read(const Request& request, Able able, unsigned route,
             const Defaults& defaults = {}) const;

  // The one that the request names; where it names none the first that is able to, or the first of
  // all. Throws ApiError 404.
  std::shared_ptr<ServedModel> model(const Json& body, Able able) const;

  std::vector<std::shared_ptr<ServedModel>> models_;
  Metrics metrics_;
};

}  // namespace fovea::serve
