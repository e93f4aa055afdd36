#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/metrics.h"
#include "serve/router.h"
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
  void list_models(const Answer& answer) const;
  void one_model(const Request& request, const Answer& answer) const;
  void generate(const Request& request, const Answer& answer, bool chat);
  void tokenize(const Request& request, const Answer& answer) const;
  void detokenize(const Request& request, const Answer& answer) const;

  // The one that the request names; the first where it names none. Throws ApiError 404.
  std::shared_ptr<ServedModel> model(const Json& body) const;

  std::vector<std::shared_ptr<ServedModel>> models_;
  Metrics metrics_;
};

}  // namespace fovea::serve
