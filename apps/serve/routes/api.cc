#include "serve/routes/api.h"

#include <fmt/format.h>

#include "fovea/core/excerpt.h"
#include "serve/request/unknown_fields.h"

namespace fovea::serve {

bool Api::is_unloaded(const std::string& name) const {
  return options_.loader != nullptr && !list_.find(name) && options_.loader->can_load(name);
}

std::vector<std::string> Api::unloaded() const {
  std::vector<std::string> names;
  if (options_.loader != nullptr)
    for (const auto& [name, state] : options_.loader->states())
      if (state != ModelLoader::State::loaded) names.push_back(name);
  return names;
}

void Api::require_loaded(const std::string& name) const {
  if (is_unloaded(name)) throw MustLoad{options_.loader, name};
}

std::shared_ptr<ServedModel> Api::model(const Json& body, Able able) const {
  const auto used = [&](const std::shared_ptr<ServedModel>& model) {
    list_.mark_use(*model);
    return model;
  };
  const Models models = this->models();
  const auto given = body.find("model");
  if (given == body.end() || !given->is_string() || given->get_ref<const std::string&>().empty()) {
    for (const auto& model : models) {
      if (able(*model)) return used(model);
    }
    if (!models.empty()) return used(models.front());
    throw ApiError{400,
                   "model: is missing, and no model is loaded; expected the name of one that "
                   "GET /v1/models lists",
                   "model", "missing_required_parameter"};
  }
  const auto name = given->get<std::string>();
  if (const auto model = list_.find(name)) return used(model);
  require_loaded(name);
  if (options_.any_model && models.size() == 1) return models.front();
  throw unknown_model(name);
}

void Api::check_unknown_fields(const Json& body, const char* path) const {
  constexpr size_t kMostName = 64;
  const std::vector<FieldInfo>& fields = fields_of_route(path);
  check_unknown(body, fields);
  for (const std::string& key : unknown_keys(body, fields))
    warn_once(
        fmt::format("{}: the field \"{}\" is unknown and ignored", path, excerpt(key, kMostName)));
}

void Api::warn_once(const std::string& line) const {
  constexpr size_t kMostWarnings = 1000;
  {
    const std::lock_guard lock(mutex_);
    if (!warn_ || warned_.size() == kMostWarnings || !warned_.insert(line).second) return;
  }
  warn_(line);
}

http::Route api_route(Api& api, const char* method, const char* path, Answer answer,
                      ErrorShape shape, size_t most_body) {
  http::Route route = guarded_route(
      method, path,
      [&api, answer](const http::Request& request,
                     const std::shared_ptr<http::Exchange>& exchange) {
        answer(api, request, exchange);
      },
      shape);
  route.most_body = most_body;
  return route;
}

}  // namespace fovea::serve
