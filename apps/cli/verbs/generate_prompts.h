#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fovea/infer/engine.h"
#include "fovea/model/model.h"
#include "options/options.h"

namespace fovea::cli {

// `fovea generate --prompts`: answers a file of requests by the routes of the server.
class PromptsFile {
 public:
  void declare(OptionTable& table);
  // Refuses options that only one prompt has, or with one prompt those of files.
  void check(const OptionTable& table) const;
  bool given() const { return !file_.empty(); }

  struct Model {
    std::string path;
    model::Model opened;
    std::optional<model::Model> draft = {};
    infer::GenerateOptions defaults;  // of requests
    bool tokens_given = false;        // defaults.max_tokens is one of the command
    uint64_t seed = 0;
  };
  // Writes the output, and returns the exit code. `key`: what else decides its bytes.
  int run(const Model& model, const nlohmann::ordered_json& key);

 private:
  std::string file_, out_, template_;
  infer::EngineOptions engine_;
};

}  // namespace fovea::cli
