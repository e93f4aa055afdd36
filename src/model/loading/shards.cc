#include "loading/shards.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "safetensors/safetensors.h"

namespace fovea::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string shard_name(size_t number, size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

// Returns N of the name model-00001-of-0000N.safetensors; 0 for other names.
size_t count_in_name(const std::string& name) {
  constexpr size_t kFirst = 6, kSecond = 15, kDigits = 5;  // of the numbers
  const auto number_at = [&](size_t at) {
    size_t number = 0;
    for (const char c : name.substr(at, kDigits)) {
      if (c < '0' || c > '9') return size_t{0};
      number = 10 * number + static_cast<size_t>(c - '0');
    }
    return number;
  };
  if (name.size() != shard_name(1, 1).size()) return 0;
  const size_t number = number_at(kFirst), count = number_at(kSecond);
  return name == shard_name(number, count) ? count : 0;
}

// The shards in a folder, of one or more models.
struct OldShards {
  std::set<std::string> names;
  std::set<size_t> counts;  // the numbers of shards in the names
};

OldShards old_shards(const std::string& folder) {
  OldShards old;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const size_t count = count_in_name(name);
    if (count == 0) continue;
    old.names.insert(name);
    old.counts.insert(count);
  }
  return old;
}

// Divides the shard with the most tensors in two; returns false if all have one.
bool divide_one(Shards& shards) {
  const auto largest =
      std::max_element(shards.begin(), shards.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (largest->size() < 2) return false;
  const auto middle = largest->begin() + std::ssize(*largest) / 2;
  std::vector<std::string> second(middle, largest->end());
  largest->erase(middle, largest->end());
  shards.insert(largest + 1, std::move(second));
  return true;
}

void remove_if_present(const std::string& path) {
  if (system_calls().unlink(path.c_str()) != 0 && errno != ENOENT)
    fail(ErrorKind::Failed, "{}: cannot be removed ({}); expected a writable folder", path,
         std::generic_category().message(errno));
}

void write_index(const std::string& folder, const std::map<std::string, Tensor>& tensors,
                 const std::map<std::string, std::string>& weight_map) {
  uint64_t bytes = 0;
  int64_t elements = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes(), elements += tensor.size();
  const nlohmann::ordered_json index = {
      {"metadata", {{"total_parameters", elements}, {"total_size", bytes}}},
      {"weight_map", weight_map}};
  write_file_atomically(folder + "/" + kIndex, pretty(index));
}

}  // namespace

Shards shards_of(const std::map<std::string, Tensor>& tensors, uint64_t most_bytes,
                 const std::set<size_t>& taken) {
  Shards shards(1);
  uint64_t filled = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!shards.back().empty() && filled + tensor.bytes() > most_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(name);
    filled += tensor.bytes();
  }
  while (shards.size() > 1 && taken.contains(shards.size()) && divide_one(shards)) {
  }
  return shards;
}

// Shards that have the names of old ones would mix both models, so that their number differs. What
// opens a folder prefers model.safetensors to an index: its removal, or the new index, is the step
// that replaces the old model.
void write_weights(const std::string& folder, const std::map<std::string, Tensor>& tensors,
                   uint64_t most_bytes) {
  const OldShards old = old_shards(folder);
  const Shards shards = shards_of(tensors, most_bytes, old.counts);
  if (shards.size() == 1) {
    write_safetensors(folder + "/" + kWhole, tensors);
    remove_if_present(folder + "/" + kIndex);
  } else {
    check(shards.size() < 100'000, "{}: {} files of weights; expected fewer, of a larger size",
          folder, shards.size());
    size_t count = shards.size();
    // If no shard can be divided, the number in the names is larger than that of the files.
    while (old.counts.contains(count)) ++count;
    std::map<std::string, std::string> weight_map;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(i + 1, count);
      std::map<std::string, Tensor> part;
      for (const std::string& tensor : shards[i]) {
        part[tensor] = tensors.at(tensor);
        weight_map[tensor] = name;
      }
      write_safetensors(folder + "/" + name, part);
    }
    write_index(folder, tensors, weight_map);
    remove_if_present(folder + "/" + kWhole);
  }
  for (const std::string& name : old.names) remove_if_present(folder + "/" + name);
}

}  // namespace fovea::model
