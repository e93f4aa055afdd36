#pragma once

// Handles the requests of the page: converts a path, a query and a body to a response, without the
// network, so that every route can be tested. docs/inspect.md lists the routes.

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fovea/infer/image_model.h"
#include "fovea/study/inspect.h"

namespace fovea::inspector {

class Query;

constexpr const char* kImagePath = "api/image";  // its bodies are images
constexpr size_t kMostImageBody = size_t{64} << 20;

struct Request {
  std::string method, path;  // relative to the page's path: "api/run"
  std::map<std::string, std::string> query;
  std::string body;
};

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

// The models are fixed at construction. A client refers to them by number ("0"), and to snapshots
// in their directories by number and step ("0@500").
class Routes {
 public:
  // `adapters` are those of the first model, which is then listed once more without them.
  explicit Routes(std::vector<std::string> folders, std::vector<model::AdapterUse> adapters = {});
  Routes(std::string name, const model::Model& model);  // an opened model

  // The file of the image with which the page of images begins; call it before the first
  // respond().
  void begin_with(std::string image) { image_ = std::move(image); }

  // May be called from several threads at once. Does not throw for invalid requests.
  Response respond(const Request& request);

 private:
  struct Run {
    std::string id, wanted;  // the id of the run, and its request, to find an identical one
    const void* of;          // the model; a training run may have replaced it in the meantime
    std::shared_ptr<const study::Inspection> inspection;
  };
  struct Opened {
    std::string name;
    int64_t written;  // time of the files, which a training run rewrites
    model::Model model;
  };

  Response dispatch(const Request& request);
  Response about_run(const std::string& path, const Query& query);
  std::string models() const;
  std::string spec(const std::string& model);
  std::string start(const std::string& body);
  std::string image(const Query& query, const std::string& file);
  std::string keep(std::shared_ptr<const study::Inspection> inspection, std::string wanted,
                   const void* of);  // returns the id of the run
  std::string explain(const std::string& body);
  std::string generation(const std::string& body);
  std::string chat_prompt(const std::string& body);
  model::Model model(const std::string& name);
  // Returns an encoder of images; nothing if the model is another one.
  std::optional<infer::ImageModel> image_model(const std::string& name);
  std::shared_ptr<const study::Inspection> run(const std::string& id);

  std::vector<std::string> folders_;
  std::vector<model::AdapterUse> adapters_;  // of the model in the first folder
  bool given_ = false;                       // the model was passed in; its folder is only a name
  std::string image_;                        // see begin_with()
  std::mutex mutex_;                         // protects the following members
  std::list<Opened> open_;                   // most recently used first
  std::map<size_t, std::pair<int64_t, infer::ImageModel>>
      image_models_;     // with the time of the files
  std::list<Run> runs_;  // most recently used first
  int64_t started_ = 0;
};

// Returns the parts of a training log that charts need: {"steps", "evaluations", "metrics",
// "samples"}. "metrics" has a list of [step, value] for each measurement of preferences and
// reinforcement, with the prefix "held_out_" if it is one of an evaluation; "samples" has the first
// and the last sample.
std::string training_log(const std::string& folder);

}  // namespace fovea::inspector
