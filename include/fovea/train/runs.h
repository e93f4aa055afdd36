#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fovea::train {

using Curve = std::vector<std::pair<int64_t, double>>;  // (step, value)

// The log of a training run, from its log.jsonl, and the settings of its newest snapshot.
struct RunLog {
  std::string folder;
  // The command that was run last, its working directory, the version of fovea and the time;
  // empty = unknown.
  std::vector<std::string> command;
  std::string working_folder, version, time;
  std::map<std::string, Curve> curves;  // by key: "loss", "eval_loss", "tokens_per_sec", ...
  double seconds = 0;                   // of all its processes together
  std::map<std::string, std::string> settings;  // by name: "learning_rate", "spec.width", ...
};

// Returns the directories of training runs: `folder`, and those in it and in its subdirectories, at
// most three levels deep.
std::vector<std::string> find_runs(const std::string& folder);
// Throws BadFile if the folder has no log.jsonl, or if it is not a regular file of at most 256 MB.
RunLog read_run(const std::string& folder);

// Draws curves over steps as an SVG, each with its name.
std::string overlaid(const std::vector<std::pair<std::string, Curve>>& curves,
                     const std::string& title);

}  // namespace fovea::train
