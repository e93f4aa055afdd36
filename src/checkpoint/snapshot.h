#pragma once

// The state of a training run on disk. FOLDER/checkpoint-STEP/ holds
//   state.safetensors   every tensor of the state
//   state.json          everything else of it
//   manifest.json       {"version": 1, "files": {NAME: {"bytes": N, "xxh3": 16 hex digits}, ...}}
// and whatever other files the run adds. It appears under its name at once, after all of it is on
// the disk; what the manifest does not vouch for is not loaded.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace fovea {

// What is saved.
struct SnapshotContents {
  std::map<std::string, Tensor> tensors;
  nlohmann::ordered_json state;
  std::vector<std::pair<std::string, Pieces>> others;  // more files, by plain names
};

// What is loaded. The tensors are read from the mapped file: to be copied, not written to.
struct Snapshot {
  std::string path;
  int64_t step = 0;
  nlohmann::json state;
  SafeTensors tensors;
};

// The steps of the folder's snapshots, newest first, whole or not.
std::vector<int64_t> find_snapshots(const std::string& folder);
std::string snapshot_path(const std::string& folder, int64_t step);

// Compares every file with the manifest; BadFile names the one that differs, and how.
void verify_snapshot(const std::string& path);
Snapshot load_snapshot(const std::string& folder, int64_t step);

// The newest whole snapshot; none if the folder has no snapshot at all. Each damaged one on the way
// is told to `say`. If all are damaged: BadFile, so that a run is not started anew over what may be
// rescued.
std::optional<Snapshot> load_latest_snapshot(const std::string& folder,
                                             const std::function<void(const std::string&)>& say);

// The one writer of a folder: holds its lock and has removed what killed writers left there.
class SnapshotFolder {
 public:
  explicit SnapshotFolder(const std::string& folder);

  // Failed, naming path and bytes needed, leaves the earlier snapshots as they were and nothing of
  // this one. A snapshot of the same step is replaced.
  void save(int64_t step, const SnapshotContents& contents);

  // Removes what is older than the `keep` newest whole snapshots, so never the only whole one.
  void prune(int keep);

 private:
  std::string folder_;
  DirectoryLock lock_;
};

}  // namespace fovea
