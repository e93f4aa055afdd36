#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/models/served_model.h"

namespace fovea::serve {

// The models that a server has in memory. All functions are safe to call from any thread.
class ModelList {
 public:
  using Models = std::vector<std::shared_ptr<ServedModel>>;
  explicit ModelList(Models models) : models_(std::move(models)) {}

  Models all() const;
  // Returns the model with this name, or null.
  std::shared_ptr<ServedModel> find(const std::string& name) const;
  void add(std::shared_ptr<ServedModel> model);
  // Ends serving a model, and returns it, or null if the name is unknown.
  std::shared_ptr<ServedModel> remove(const std::string& name);
  // Makes the model the one that was used last.
  void mark_use(ServedModel& model) { model.last_use = ++uses_; }

 private:
  mutable std::mutex mutex_;
  Models models_;
  std::atomic<uint64_t> uses_ = 0;
};

}  // namespace fovea::serve
