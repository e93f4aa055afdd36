#include "serve/models/model_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>
#include <tuple>

#include "base/stop.h"
#include "serve/request/api_error.h"

namespace fovea::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstPart = "-00001-of-";

// Returns the stem of a .gguf file without "-00001-of-00003", the ending of parts of a model.
std::string without_part(const std::string& stem) {
  constexpr std::string_view kLike = "-00000-of-00000";
  if (stem.size() <= kLike.size()) return stem;
  const size_t begin = stem.size() - kLike.size();
  for (size_t i = 0; i < kLike.size(); ++i) {
    const char c = stem[begin + i];
    if (kLike[i] == '0' ? c < '0' || c > '9' : c != kLike[i]) return stem;
  }
  return stem.substr(0, begin);
}

// Returns the name of the model in a .gguf file; empty for parts after the first, and for the
// encoder of images of another model.
std::string name_of_file(const fs::path& path) {
  const std::string stem = path.stem(), name = without_part(stem);
  const bool later = name != stem && stem.compare(name.size(), kFirstPart.size(), kFirstPart) != 0;
  return later || stem.starts_with("mmproj") ? "" : name;
}

std::map<std::string, std::string> models_in(const std::string& folder) {
  std::map<std::string, std::string> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const fs::path& path = entry.path();
    const bool file = path.extension() == ".gguf";
    if (!file && !fs::exists(path / "config.json", failed)) continue;
    const std::string name = file ? name_of_file(path) : path.filename().string();
    if (!name.empty()) found[name] = path;
  }
  return found;
}

uint64_t bytes_of(const fs::path& file) {
  std::error_code failed;
  const uintmax_t bytes = fs::file_size(file, failed);
  return failed ? 0 : bytes;
}

// Returns the size of a model's weights: the safetensors in a directory, or its other files, or all
// parts of a .gguf file.
uint64_t bytes_at(const fs::path& path) {
  std::error_code failed;
  const bool folder = fs::is_directory(path, failed);
  const std::string stem = path.stem(), name = without_part(stem);
  if (!folder && name == stem) return bytes_of(path);
  const std::string beginning = folder ? "" : name + "-";
  uint64_t tensors = 0, all = 0;
  for (const auto& entry : fs::directory_iterator(folder ? path : path.parent_path(), failed)) {
    const fs::path& file = entry.path();
    if (!file.filename().string().starts_with(beginning)) continue;
    all += bytes_of(file);
    if (file.extension() == ".safetensors") tensors += bytes_of(file);
  }
  return tensors > 0 ? tensors : all;
}

uint64_t cache_bytes(const ServedModel& model) {
  const auto* const generator = model.find<TextGenerator>();
  if (generator == nullptr || !generator->engine) return 0;
  return static_cast<uint64_t>(generator->engine->status().cache_used_bytes);
}

std::string megabytes(uint64_t bytes) { return fmt::format("{} MB", (bytes >> 20) + 1); }

// Returns whether no request uses a model; its owners are then the list and the copy of the list.
bool is_idle(const std::shared_ptr<ServedModel>& model) { return model.use_count() <= 2; }

ApiError in_use(const std::string& message) { return {409, message, "model", "model_in_use"}; }

}  // namespace

ModelLoader::ModelLoader(ModelList& models, Options options)
    : models_(models), options_(std::move(options)) {}

void ModelLoader::add(const std::string& name, const std::string& path) {
  const std::lock_guard lock(mutex_);
  added_[name] = path;
}

std::map<std::string, std::string> ModelLoader::paths() const {
  auto all = models_in(options_.folder);
  const std::lock_guard lock(mutex_);
  all.insert(added_.begin(), added_.end());
  return all;
}

std::map<std::string, ModelLoader::State> ModelLoader::states() const {
  std::map<std::string, State> states;
  for (const auto& [name, path] : paths()) states[name] = State::unloaded;
  for (const auto& model : models_.all()) states[model->facts.name] = State::loaded;
  const std::lock_guard lock(mutex_);
  if (const auto found = states.find(loading_); found != states.end())
    found->second = State::loading;
  return states;
}

uint64_t ModelLoader::used_bytes() const {
  const auto models = models_.all();
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& model : models)
    if (const auto found = loaded_.find(model->facts.name); found != loaded_.end())
      bytes += found->second + cache_bytes(*model);
  return bytes;
}

// Models without running requests come first.
std::string ModelLoader::least_used() const {
  auto models = models_.all();
  const std::lock_guard lock(mutex_);
  std::erase_if(models, [&](const auto& model) { return !loaded_.contains(model->facts.name); });
  const auto order = [](const std::shared_ptr<ServedModel>& model) {
    return std::tuple(!is_idle(model), model->last_use.load());
  };
  const auto least = std::min_element(
      models.begin(), models.end(),
      [&](const auto& one, const auto& other) { return order(one) < order(other); });
  return least == models.end() ? "" : (*least)->facts.name;
}

void ModelLoader::make_room(const std::string& name, uint64_t bytes, const Gone& gone) {
  if (bytes > options_.memory)
    throw ApiError{503,
                   fmt::format("model: \"{}\" needs {}; expected at most {}, the memory of loaded "
                               "models",
                               name, megabytes(bytes), megabytes(options_.memory)),
                   "model", "model_too_large"};
  while (used_bytes() + bytes > options_.memory) {
    const std::string least = least_used();
    if (least.empty()) return;
    end(least, gone);
  }
}

// Unloads a model after its running requests; new ones wait for the loader.
void ModelLoader::end(const std::string& name, const Gone& gone) {
  std::shared_ptr<ServedModel> model = models_.remove(name);
  if (model == nullptr) throw unknown_model(name);
  while (model.use_count() > 1) {
    if (gone() || worker_.stopping()) {
      models_.add(std::move(model));
      throw Stopped();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const std::lock_guard lock(mutex_);
  loaded_.erase(name);
  idle_.erase(name);
}

ModelList::Models ModelLoader::opened(const std::string& name, const std::string& path) {
  const auto set_loading = [&](const std::string& loading) {
    const std::lock_guard lock(mutex_);
    loading_ = loading;
  };
  set_loading(name);
  try {
    // A client that leaves does not stop the loading, which its next request would begin anew.
    const StopScope scope([&] { return worker_.stopping(); });
    auto models = options_.open(name, path);
    set_loading("");
    return models;
  } catch (const Error& error) {
    set_loading("");
    throw without_folder(error, fs::path(path).parent_path());
  } catch (...) {
    set_loading("");
    throw;
  }
}

void ModelLoader::load(const std::string& name, const Gone& gone) {
  const std::lock_guard change(changing_);
  if (models_.find(name)) return;
  const auto known = paths();
  const auto found = known.find(name);
  if (found == known.end()) throw unknown_model(name);
  if (gone()) throw Stopped();
  make_room(name, bytes_at(found->second), gone);
  for (const auto& model : opened(name, found->second)) {
    const auto weights = static_cast<uint64_t>(model->facts.weight_bytes);
    {
      const std::lock_guard lock(mutex_);
      loaded_[model->facts.name] = weights > 0 ? weights : bytes_at(found->second);
    }
    models_.add(model);
  }
}

void ModelLoader::unload(const std::string& name, const Gone& gone) {
  const std::lock_guard change(changing_);
  if (options_.kept.contains(name))
    throw in_use(fmt::format("model: \"{}\" is the base of fine-tuning jobs, and stays", name));
  for (const auto& other : models_.all())
    if (other->facts.parent == name)
      throw in_use(
          fmt::format("model: \"{}\" is the base of {}; expected the adapter to be unloaded first",
                      name, other->facts.name));
  constexpr auto kLongest = std::chrono::seconds(30);
  const auto start = std::chrono::steady_clock::now();
  bool late = false;
  try {
    end(name, [&] {
      late = std::chrono::steady_clock::now() - start > kLongest;
      return late || gone();
    });
  } catch (const Stopped&) {
    if (!late) throw;
    throw in_use("model: requests to \"" + name + "\" are still running; expected none");
  }
}

bool ModelLoader::keep(const std::string& name, Milliseconds idle) {
  const std::lock_guard lock(mutex_);
  if (!loaded_.contains(name) || options_.kept.contains(name)) return false;
  idle_.erase(name);
  if (idle < Milliseconds(0)) return true;
  idle_.emplace(name, Idle{idle});
  if (!timer_.joinable())
    timer_ = std::jthread([this](const std::stop_token& stop) { unload_idle(stop); });
  return true;
}

std::optional<ModelLoader::Milliseconds> ModelLoader::time_left(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = idle_.find(name);
  if (found == idle_.end()) return std::nullopt;
  const auto passed = std::chrono::duration_cast<Milliseconds>(Clock::now() - found->second.since);
  return std::max(Milliseconds(0), found->second.limit - passed);
}

std::vector<std::string> ModelLoader::overdue() {
  std::vector<std::string> names;
  const auto models = models_.all();
  const std::lock_guard lock(mutex_);
  for (const auto& model : models) {
    const auto found = idle_.find(model->facts.name);
    if (found == idle_.end()) continue;
    Idle& idle = found->second;
    const uint64_t last_use = model->last_use;
    if (!is_idle(model) || idle.last_use != last_use)
      idle = {idle.limit, last_use};
    else if (Clock::now() - idle.since >= idle.limit)
      names.push_back(model->facts.name);
  }
  return names;
}

void ModelLoader::unload_idle(const std::stop_token& stop) {
  constexpr Milliseconds kTick(100);
  while (!stop.stop_requested()) {
    for (const std::string& name : overdue()) {
      try {
        unload(name, [&] { return stop.stop_requested(); });
      } catch (const ApiError&) {  // it is in use again, or another request has unloaded it
      } catch (const Stopped&) {
      }
    }
    std::unique_lock lock(mutex_);
    tick_.wait_for(lock, stop, kTick, [] { return false; });
  }
}

void ModelLoader::stop() {
  timer_.request_stop();
  worker_.stop();
  timer_ = {};  // waits for its end
}

}  // namespace fovea::serve
