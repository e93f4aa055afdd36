#pragma once

// The state of a training run on disk. FOLDER/checkpoint-STEP/ holds
//   state.safetensors   every tensor of the state
//   state.json          the rest of the state
//   manifest.json       {"version": 1, "files": {NAME: {"bytes": N, "xxh3": 16 hex digits}, ...}}
// and any other files that the run adds. The folder appears under its name only after all files are
// on the disk; files that the manifest does not list are not loaded.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "safetensors/safetensors.h"

namespace fovea::model {

// The data to save.
struct SnapshotContents {
  std::map<std::string, Tensor> tensors;
  nlohmann::ordered_json state;
  std::vector<std::pair<std::string, Pieces>> others;  // additional files, by plain names
};

// A loaded snapshot. The tensors are read-only mapped memory: copy them.
struct Snapshot {
  std::string path;
  int64_t step = 0;
  nlohmann::json state;
  SafeTensors tensors;
};

// Returns the steps of the folder's snapshots, newest first, including damaged ones.
std::vector<int64_t> find_snapshots(const std::string& folder);
std::string snapshot_path(const std::string& folder, int64_t step);

// Compares every file that the manifest lists with the manifest. Throws BadFile naming the file
// that differs and how it differs.
void verify_snapshot(const std::string& path);
Snapshot load_snapshot(const std::string& folder, int64_t step);

// Loads the newest intact snapshot; returns nothing if the folder has no snapshot. Calls `say` with
// a message for each damaged snapshot that is skipped. Throws BadFile if all are damaged, so that a
// new run does not overwrite recoverable data.
std::optional<Snapshot> load_latest_snapshot(const std::string& folder,
                                             const std::function<void(const std::string&)>& say);

// The only writer of a folder: holds its lock and removes the leftovers of killed writers.
class SnapshotFolder {
 public:
  explicit SnapshotFolder(const std::string& folder);

  // Writes a snapshot, replacing a snapshot of the same step. Throws Failed, naming the path, if
  // this is not possible; then the earlier snapshots are unchanged and nothing of the new one
  // remains.
  void save(int64_t step, const SnapshotContents& contents);

  // Keeps the `keep` newest intact snapshots and removes all older ones. Newer damaged snapshots
  // stay, and the only intact snapshot is never removed.
  void prune(int keep);

 private:
  std::string folder_;
  DirectoryLock lock_;
};

}  // namespace fovea::model
