#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "http/handler_pool.h"
#include "serve/models/model_list.h"

namespace fovea::serve {

// Loads models while the server runs: those in a folder, and those that were fetched from the Hub.
// If they need more memory than they may use, it unloads the one whose last use is longest ago,
// after its running requests. All functions are safe to call from any thread.
class ModelLoader {
 public:
  struct Options {
    std::string folder = {};          // of models; empty: only those of add()
    uint64_t memory = 0;              // bytes that the loaded models may use, with their caches
    std::set<std::string> kept = {};  // models that are not unloaded
    // Opens a model: the model, followed by others that share its weights.
    std::function<ModelList::Models(const std::string& name, const std::string& path)> open = {};
  };
  enum class State { unloaded, loading, loaded };
  using Gone = std::function<bool()>;  // whether nobody waits for the result
  using Milliseconds = std::chrono::milliseconds;

  ModelLoader(ModelList& models, Options options);  // `models` must outlive the loader
  ~ModelLoader() { stop(); }
  ModelLoader(const ModelLoader&) = delete;
  ModelLoader& operator=(const ModelLoader&) = delete;

  void add(const std::string& name, const std::string& path);  // a model that can be loaded
  // Returns the models that can be loaded, or are: directories of the folder with a config.json,
  // its .gguf files, and those of add().
  std::map<std::string, std::string> paths() const;  // by name
  std::map<std::string, State> states() const;       // by name; also of models without a path
  bool can_load(const std::string& name) const { return paths().contains(name); }

  // Loads a model, unless it is. Throws ApiError 404 if the name is unknown, and 503 if it needs
  // more memory than all may use.
  void load(const std::string& name, const Gone& gone);
  // Unloads a model after its running requests. Throws ApiError 404 if it is not loaded, and 409 if
  // it must stay, or if its requests run for too long.
  void unload(const std::string& name, const Gone& gone);
  // Unloads a model after this time without requests; a negative time undoes it. Returns false if
  // the loader has not loaded the model, or keeps it.
  bool keep(const std::string& name, Milliseconds idle);
  // Returns the time until a model is unloaded, if no request names it; empty: it is not.
  std::optional<Milliseconds> time_left(const std::string& name) const;
  void stop();  // drops the waiting work
  // Runs `work`, which loads or unloads a model, on the thread of the loader: it may wait for long.
  // Returns false if too much work waits.
  bool run(std::function<void()> work) { return worker_.run(std::move(work)); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Idle {
    Milliseconds limit;
    uint64_t last_use = 0;  // of the model, when it was last seen
    Clock::time_point since = Clock::now();
  };
  uint64_t used_bytes() const;
  std::string least_used() const;  // the name; empty: no model can be unloaded
  void make_room(const std::string& name, uint64_t bytes, const Gone& gone);
  ModelList::Models opened(const std::string& name, const std::string& path);
  void end(const std::string& name, const Gone& gone);
  std::vector<std::string> overdue();  // the names of models that have been idle for too long
  void unload_idle(const std::stop_token& stop);

  static constexpr size_t kMostWaiting = 256;
  ModelList& models_;
  const Options options_;
  std::mutex changing_;       // one change at a time
  mutable std::mutex mutex_;  // of the members below
  std::map<std::string, std::string> added_;
  std::map<std::string, uint64_t> loaded_;  // bytes of the weights
  std::map<std::string, Idle> idle_;        // models that keep() named
  std::string loading_;
  std::condition_variable_any tick_;
  std::jthread timer_;  // runs unload_idle(), from the first keep() on
  http::HandlerPool worker_{1, kMostWaiting};
};

// A request names a model that is not in memory. guarded_route() loads it, and calls the handler
// again.
struct MustLoad {
  ModelLoader* loader;
  std::string name;
};

}  // namespace fovea::serve
