#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "serve/models/model_list.h"
#include "tuning/fine_tuning.h"

namespace fovea::serve {

// Serves the results of fine-tuning jobs from the weights of their base models. If all results
// together take too much memory, the oldest ones are not served any more. All functions are safe to
// call from any thread.
class TunedModels {
 public:
  // `models` contains the base models, and must outlive this object; `note` receives lines for the
  // log.
  TunedModels(ModelList& models, std::function<void(const std::string& line)> note)
      : models_(models), note_(std::move(note)) {}
  void add(const tuning::TunedModel& tuned);
  void remove(const std::string& name);  // does nothing if it is not served

 private:
  struct Result {
    std::string name;
    uint64_t bytes;
  };
  ModelList& models_;
  const std::function<void(const std::string&)> note_;
  std::mutex mutex_;
  std::deque<Result> results_;  // oldest first
};

}  // namespace fovea::serve
