#include "serve/jobs/tuned_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "serve/request/api_error.h"

namespace fovea::serve {

void TunedModels::add(const tuning::TunedModel& tuned) {
  constexpr uint64_t kMostBytes = uint64_t{512} << 20;
  const auto base = models_.find(tuned.base);
  if (base == nullptr) throw unknown_model(tuned.base);
  models_.add(base->needs<TextGenerator>().open_adapter(tuned.name, {tuned.folder}));
  std::error_code missing;
  const uintmax_t bytes =
      std::filesystem::file_size(tuned.folder + "/adapter_model.safetensors", missing);
  const std::lock_guard lock(mutex_);
  results_.push_back({tuned.name, missing ? 0 : bytes});
  const auto used = [&] {
    return std::accumulate(results_.begin(), results_.end(), uint64_t{0},
                           [](uint64_t sum, const Result& result) { return sum + result.bytes; });
  };
  while (results_.size() > 1 && used() > kMostBytes) {
    note_("no longer serving " + results_.front().name + ", an older result");
    models_.remove(results_.front().name);
    results_.pop_front();
  }
  note_(fmt::format("serving {} (adapter of {})", tuned.name, tuned.base));
}

void TunedModels::remove(const std::string& name) {
  models_.remove(name);
  const std::lock_guard lock(mutex_);
  std::erase_if(results_, [&](const Result& result) { return result.name == name; });
}

}  // namespace fovea::serve
