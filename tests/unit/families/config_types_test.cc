// The values of config.json have the types that the classes of transformers expect.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

std::string type_of(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "bool";
  if (value.is_number_integer()) return "int";
  if (value.is_number()) return "float";
  return value.is_string() ? "str" : value.is_array() ? "list" : "dict";
}

// Regression: the directories of Gemma 2 and 3 had 64.0 for an integer, and transformers 5 refused
// them.
TEST(ConfigTypes, AreThoseOfTransformers) {
  const Json all = read_json("tests/goldens/config_types.json").at("families");
  for (const auto& [name, known] : all.items()) {
    SCOPED_TRACE(name);
    const Family& family = family_named(name, "config_types.json");
    Config reader(known.at("config"), name), writer;
    Spec spec;
    ASSERT_NO_THROW(describe(reader, family, spec));
    describe(writer, family, spec);
    const Json& types = known.at("types");
    int64_t seen = 0;
    for (const auto& [key, value] : writer.written().items()) {
      if (!types.contains(key)) continue;
      const std::vector<std::string> accepted = types.at(key);
      EXPECT_NE(std::find(accepted.begin(), accepted.end(), type_of(value)), accepted.end())
          << key << " is " << value.dump() << ", not one of " << types.at(key).dump();
      ++seen;
    }
    EXPECT_GT(seen, 5);
  }
}

}  // namespace
}  // namespace fovea::model
