// Every key of every family's config.json is honoured, harmless or refused: a change of its value
// changes the Spec, has no effect for a reason that is listed, or is an error.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/settings.h"
#include "families/registry.h"
#include "support/shared_folder.h"

namespace fovea::model {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Harmless {
  const char *key, *why;
};
// Keys that a family reads, or names as known, although no change of them affects the results.
// Those of all families are in settings.inc.
const std::vector<Harmless> kHarmless = {};

// Returns the directories with a config.json of a known family.
std::vector<std::string> folders() {
  std::vector<std::string> all;
  for (const std::string& root : {std::string("tests/goldens"), shared("fixtures/models"),
                                  shared("fixtures/models2"), shared("fixtures/models3")}) {
    if (!fs::is_directory(root)) continue;
    for (const auto& entry : fs::directory_iterator(root))
      if (fs::exists(entry.path() / "config.json")) all.push_back(entry.path().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

const Family* family_of(const Json& config) {
  const Json type = config.is_object() ? config.value("model_type", Json()) : Json();
  for (const Family* family : families())
    if (type == family->model_type) return family;
  return nullptr;
}

Spec spec_of(const Json& config, const Family& family) {
  Spec spec;
  Config reader(config, "config.json");
  describe(reader, family, spec);
  return spec;
}

// Returns the keys that the family's function writes, which include those that it reads.
std::set<std::string> own_keys(const Family& family, Spec spec) {
  Config writer;
  try {
    describe(writer, family, spec);
  } catch (const Error&) {  // a family that is only read
    return {};
  }
  std::set<std::string> keys;
  for (const auto& [key, value] : writer.written().items()) keys.insert(key);
  return keys;
}

// Returns other values of the same kind.
std::vector<Json> others(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer()) return {value.get<int64_t>() + 1, 2 * value.get<int64_t>() + 2};
  if (value.is_number()) return {value.get<double>() / 2 + 0.125, value.get<double>() / 4};
  if (value.is_string()) return {"another_name", "relu", "gelu"};
  if (value.is_array()) {
    Json shorter = value, turned = value;
    if (!shorter.empty()) shorter.erase(shorter.size() - 1);
    std::reverse(turned.begin(), turned.end());
    return {shorter, turned};
  }
  if (!value.is_object()) return {true, 3, 0.25, "another_name"};  // null, or the key is missing
  std::vector<Json> all;
  for (const auto& [key, inner] : value.items()) {
    for (const Json& other : others(inner)) {
      all.push_back(value);
      all.back()[key] = other;
    }
  }
  return all;
}

enum class Outcome { honoured, refused, none };

Outcome outcome_of(const Json& config, const Family& family, const std::string& before) {
  try {
    return write_spec(spec_of(config, family)) == before ? Outcome::none : Outcome::honoured;
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    return Outcome::refused;
  }
}

bool is_listed(const std::string& key) {
  return std::any_of(kHarmless.begin(), kHarmless.end(),
                     [&](const Harmless& each) { return key == each.key; });
}

// Returns the keys of a config that are read, or allowed, without an effect.
std::vector<std::string> silent_keys(const Json& config, const Family& family) {
  const Spec spec = spec_of(config, family);
  const std::string before = write_spec(spec);
  std::set<std::string> keys = own_keys(family, spec);
  for (const auto& [key, value] : config.items()) keys.insert(key);
  std::vector<std::string> silent;
  for (const std::string& key : keys) {
    if (key == "model_type" || key == "architectures") continue;
    bool known = false, changes = false;
    for (const Json& other : others(config.value(key, Json()))) {
      if (is_harmless("config.json", key, other)) continue;
      known = true;
      Json changed = config;
      changed[key] = other;
      changes = changes || outcome_of(changed, family, before) != Outcome::none;
    }
    if (known && !changes && !is_listed(key)) silent.push_back(key);
  }
  return silent;
}

TEST(ConfigKeys, AreHonouredHarmlessOrRefused) {
  std::set<std::string> seen;
  for (const std::string& folder : folders()) {
    const Json config = read_json(folder + "/config.json");
    const Family* const family = family_of(config);
    if (family == nullptr || family == &fovea_format) continue;
    seen.insert(family->model_type);
    SCOPED_TRACE(folder);
    EXPECT_EQ(fmt::format("{}", fmt::join(silent_keys(config, *family), ", ")), "");
  }
  EXPECT_GT(seen.size(), 20u);
}

// A key that no family knows is an error that names it.
TEST(ConfigKeys, AreRefusedByNameIfNoFamilyKnowsThem) {
  for (const std::string& folder : folders()) {
    Json config = read_json(folder + "/config.json");
    const Family* const family = family_of(config);
    if (family == nullptr || family == &fovea_format) continue;
    config["use_everything"] = true;
    try {
      spec_of(config, *family);
      ADD_FAILURE() << folder;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("use_everything"), std::string::npos) << folder;
    }
  }
}

}  // namespace
}  // namespace fovea::model
