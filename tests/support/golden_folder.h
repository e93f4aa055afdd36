#pragma once

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "safetensors/safetensors.h"
#include "support/temporary_folder.h"

namespace fovea {

// A value for set() that removes a key.
inline const nlohmann::json absent = nlohmann::json::value_t::discarded;

// A copy of a golden model in a temporary folder, which a test may change.
class GoldenFolder {
 public:
  explicit GoldenFolder(const std::string& name) {
    std::filesystem::copy("tests/goldens/" + name, folder_.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
  }
  const std::string& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const nlohmann::json& json) const {
    write_file_atomically(folder_ / name, json.dump());
  }
  nlohmann::json read(const std::string& name) const { return read_json(folder_ / name); }
  // Sets a key of a JSON file; a discarded value removes the key.
  void set(const std::string& name, const std::string& key, const nlohmann::json& value) const {
    nlohmann::json json = read(name);
    if (value.is_discarded())
      json.erase(key);
    else
      json[key] = value;
    write(name, json);
  }
  std::vector<std::string> texts() const { return read("texts.json"); }
  Tensor expected(const std::string& name) const {
    return copy(SafeTensors(folder_ / "expected.safetensors").tensor(name));
  }

 private:
  TemporaryFolder folder_;
};

inline double largest_difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return 1e9;
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    most = std::max<double>(most, std::abs(a.data_as<float>()[i] - b.data_as<float>()[i]));
  return most;
}

}  // namespace fovea
