#include "checkpoint/snapshot.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

namespace fovea::model {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr const char* kTensors = "state.safetensors";
constexpr const char* kState = "state.json";
constexpr const char* kManifest = "manifest.json";
constexpr size_t kManifestLimit = size_t{16} << 20;  // an entry takes about a hundred bytes

using NamedFile = std::pair<std::string, Pieces>;

nlohmann::ordered_json manifest_of(const std::vector<NamedFile>& files) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::object();
  for (const auto& [name, pieces] : files) {
    check(!entries.contains(name) && name != kManifest && name.find('/') == name.npos,
          "snapshot file {}: the name is reserved, in use or not plain; expected a different name",
          name);
    Hasher hasher;
    uint64_t bytes = 0;
    for (const std::string_view piece : pieces) {
      hasher.add(piece);
      bytes += piece.size();
    }
    entries[name] = {{"bytes", bytes}, {"xxh3", hash_text(hasher.hash())}};
  }
  return {{"version", 1}, {"files", std::move(entries)}};
}

void verify_file(const std::string& path, const nlohmann::json& entry,
                 const std::string& manifest) {
  const auto bytes = static_cast<uint64_t>(get_int(entry, "bytes", manifest, 0));
  const std::string expected = get_string(entry, "xxh3", manifest);
  const MappedFile file(path);
  if (file.size() != bytes) {
    fail(ErrorKind::BadFile, "{}: has {} bytes; expected {}, as in the manifest", path, file.size(),
         bytes);
  }
  Hasher hasher;
  hasher.add(file);
  if (const std::string found = hash_text(hasher.hash()); found != expected) {
    fail(ErrorKind::BadFile, "{}: is damaged (XXH3 {}); expected {}, as in the manifest", path,
         found, expected);
  }
}

}  // namespace

std::string snapshot_path(const std::string& folder, int64_t step) {
  return fmt::format("{}/{}{}", folder, kPrefix, step);
}

std::vector<int64_t> find_snapshots(const std::string& folder) {
  std::vector<int64_t> steps;
  if (!is_folder(folder)) return steps;
  for (const std::string& name : list_folders(folder)) {
    if (!name.starts_with(kPrefix)) continue;
    int64_t step = -1;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
    // Accepts only the names of snapshot_path(), not "checkpoint-007" or "checkpoint-7-old".
    if (error == std::errc() && stop == end && name == fmt::format("{}{}", kPrefix, step))
      steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

void verify_snapshot(const std::string& path) {
  const std::string manifest_path = path + "/" + kManifest;
  const nlohmann::json manifest =
      parse_json(read_file(manifest_path, kManifestLimit), manifest_path);
  get_int(manifest, "version", manifest_path, 1, 1);
  const auto files = manifest.find("files");
  if (files == manifest.end() || !files->is_object() || !files->contains(kTensors) ||
      !files->contains(kState)) {
    fail(ErrorKind::BadFile, "{}: files is incomplete; expected {} and {} in it", manifest_path,
         kTensors, kState);
  }
  for (const auto& [name, entry] : files->items()) {
    if (name.find('/') != name.npos) {
      fail(ErrorKind::BadFile,
           "{}: files: the name {} is not a plain file name; expected none with a slash",
           manifest_path, brief(name));
    }
    verify_file(path + "/" + name, entry, manifest_path);
  }
}

Snapshot load_snapshot(const std::string& folder, int64_t step) {
  const std::string path = snapshot_path(folder, step);
  verify_snapshot(path);
  return {path, step, read_json(path + "/" + kState), SafeTensors(path + "/" + kTensors)};
}

std::optional<Snapshot> load_latest_snapshot(const std::string& folder,
                                             const std::function<void(const std::string&)>& say) {
  const std::vector<int64_t> steps = find_snapshots(folder);
  for (const int64_t step : steps) {
    try {
      return load_snapshot(folder, step);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::BadFile) throw;
      say(fmt::format("{}; {} is skipped", error.what(), snapshot_path(folder, step)));
    }
  }
  if (steps.empty()) return std::nullopt;
  fail(ErrorKind::BadFile,
       "{}: all {} snapshots are damaged; expected an intact one (remove them to start again)",
       folder, steps.size());
}

SnapshotFolder::SnapshotFolder(const std::string& folder) : folder_(folder), lock_(folder) {
  remove_leftovers(folder);
}

void SnapshotFolder::save(int64_t step, const SnapshotContents& contents) {
  const SafeTensorsImage image(contents.tensors);
  const std::string state = pretty(contents.state);
  std::vector<NamedFile> files = {{kTensors, image.pieces()}, {kState, {state}}};
  files.insert(files.end(), contents.others.begin(), contents.others.end());
  const nlohmann::ordered_json manifest = manifest_of(files);
  const std::string manifest_text = pretty(manifest);

  uint64_t bytes = manifest_text.size();
  for (const auto& entry : manifest["files"]) bytes += entry["bytes"].get<uint64_t>();
  DirectoryWriter writer(snapshot_path(folder_, step), bytes);
  for (const auto& [name, pieces] : files) writer.write(name, pieces);
  writer.write(kManifest, {manifest_text});  // written last, since it lists the other files
  writer.commit();
}

void SnapshotFolder::prune(int keep) {
  check(keep >= 1, "prune: {} snapshots to keep; expected at least 1", keep);
  int whole = 0;
  for (const int64_t step : find_snapshots(folder_)) {
    const std::string path = snapshot_path(folder_, step);
    if (whole >= keep) {
      remove_folder(path);
      continue;
    }
    try {
      verify_snapshot(path);
      ++whole;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::BadFile) throw;
    }
  }
}

}  // namespace fovea::model
