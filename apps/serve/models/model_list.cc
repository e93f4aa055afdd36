#include "serve/models/model_list.h"

#include <algorithm>

namespace fovea::serve {
namespace {

template <class Models>
auto position(Models& models, const std::string& name) {
  return std::find_if(models.begin(), models.end(),
                      [&](const auto& model) { return model->facts.name == name; });
}

}  // namespace

ModelList::Models ModelList::all() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

std::shared_ptr<ServedModel> ModelList::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = position(models_, name);
  return found == models_.end() ? nullptr : *found;
}

void ModelList::add(std::shared_ptr<ServedModel> model) {
  mark_use(*model);
  const std::lock_guard lock(mutex_);
  models_.push_back(std::move(model));
}

std::shared_ptr<ServedModel> ModelList::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = position(models_, name);
  if (found == models_.end()) return nullptr;
  std::shared_ptr<ServedModel> model = std::move(*found);
  models_.erase(found);
  return model;
}

}  // namespace fovea::serve
