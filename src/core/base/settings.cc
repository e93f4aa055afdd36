#include "base/settings.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

constexpr const char* kSettings =
#include "base/settings.inc"
    ;

// The values of a key that are harmless; all values if the list is empty.
using Harmless = std::map<std::string, std::vector<nlohmann::json>, std::less<>>;

std::map<std::string, Harmless, std::less<>> read_table() {
  std::map<std::string, Harmless, std::less<>> table;
  const nlohmann::json json = nlohmann::json::parse(kSettings);
  for (const auto& [file, groups] : json.items()) {
    for (const nlohmann::json& group : groups) {
      const nlohmann::json keys = group.value("keys", nlohmann::json::array());
      const nlohmann::json values = group.value("values", nlohmann::json::object());
      for (const nlohmann::json& key : keys) table[file][key.get<std::string>()];
      for (const auto& [key, list] : values.items())
        for (const nlohmann::json& value : list) table[file][key].push_back(value);
    }
  }
  return table;
}

}  // namespace

bool is_harmless(std::string_view file, const std::string& key, const nlohmann::json& value) {
  static const auto table = read_table();
  if (value.is_null()) return true;
  const auto settings = table.find(file);
  if (settings == table.end()) return false;
  const auto found = settings->second.find(key);
  if (found == settings->second.end()) return false;
  const std::vector<nlohmann::json>& values = found->second;
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

void refuse_unknown_settings(const nlohmann::json& settings, const std::string& path,
                             std::string_view file, const std::set<std::string_view>& known) {
  for (const auto& [key, value] : settings.items()) {
    if (known.contains(key) || is_harmless(file, key, value)) continue;
    fail(ErrorKind::Unsupported,
         "{}: {} is not known and, as {}, may change results; expected no such key", path,
         excerpt(key), brief(value));
  }
}

}  // namespace fovea
