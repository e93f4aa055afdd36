#pragma once

// The questions that the page asks, answered: from a path, a query and a body to bytes. No network
// here, so that every answer can be tested; docs/inspect.md lists the routes.

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fovea/inspect.h"

namespace fovea::inspector {

struct Question {
  std::string method, path;  // relative to where the page lies: "api/run"
  std::map<std::string, std::string> query;
  std::string body;
};

struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

// Which models may be looked at is fixed here; a client names them by number ("0"), and snapshots
// of a training in their directories by number and step ("0@500").
class Routes {
 public:
  explicit Routes(std::vector<std::string> folders);
  Routes(std::string name, const Model& model);  // one that is open already

  // Safe from several threads. Never throws for what a client may send.
  Answer answer(const Question& question);

 private:
  struct Run {
    std::string id, wanted;  // the request, to find an equal one again
    const Model::Parts* of;  // the model, which a training may have written anew since
    std::shared_ptr<const Inspector> inspector;
  };
  struct Opened {
    std::string name;
    int64_t written;  // when, as a training writes its model again and again
    Model model;
  };

  Answer dispatch(const Question& question);
  std::string models() const;
  std::string spec(const std::string& model);
  std::string start(const std::string& body);
  Model model(const std::string& name);
  std::shared_ptr<const Inspector> run(const std::string& id);

  std::vector<std::string> folders_;
  bool given_ = false;      // the model came opened; its folder is a name only
  std::mutex mutex_;        // of all below
  std::list<Opened> open_;  // the last one used first
  std::list<Run> runs_;     // the same
  int64_t started_ = 0;
};

// The lines of a training's log that a chart needs: {"steps", "evaluations"}.
std::string training_log(const std::string& folder);

}  // namespace fovea::inspector
