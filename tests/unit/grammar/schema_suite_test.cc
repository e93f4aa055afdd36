#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "unit/grammar/reader.h"

namespace fovea::text {
namespace {

using SuiteJson = nlohmann::ordered_json;

// Returns the value with the keys of objects in the order of the schema's properties, which is the
// order that the grammar generates.
SuiteJson ordered(const SuiteJson& value, const SuiteJson& schema) {
  if (!value.is_object() || !schema.is_object() || !schema.contains("properties") ||
      !schema["properties"].is_object())
    return value;
  SuiteJson sorted = SuiteJson::object();
  for (const auto& [key, inner] : schema["properties"].items())
    if (value.contains(key)) sorted[key] = ordered(value[key], inner);
  for (const auto& [key, inner] : value.items())
    if (!sorted.contains(key)) sorted[key] = inner;
  return sorted;
}

// The result for one case of JSON-Schema-Test-Suite.
const char* result_of(const SuiteJson& schema, const SuiteJson& test) {
  try {
    Reader reader(schema.dump());
    const bool reads = reader.reads(ordered(test["data"], schema).dump());
    if (reads == test["valid"].get<bool>()) return "right";
    return reads ? "unsound" : "narrower";
  } catch (const Error&) {
    return "refused";
  }
}

// tools/compare/run_schema_suite.py sets the variables: the folder with the tests of a draft, and a
// file for the results.
TEST(SchemaSuite, WritesTheResultOfEachCase) {
  const char *const folder = std::getenv("FOVEA_SCHEMA_SUITE"), *const out = std::getenv(
                                                                    "FOVEA_SCHEMA_RESULTS");
  if (folder == nullptr || out == nullptr)
    GTEST_SKIP() << "FOVEA_SCHEMA_SUITE and FOVEA_SCHEMA_RESULTS are not set";
  std::ofstream results(out);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    for (const SuiteJson& group : SuiteJson::parse(read_file(file))) {
      for (const SuiteJson& test : group["tests"])
        results << SuiteJson{{"file", file.stem().string()},
                             {"group", group["description"]},
                             {"test", test["description"]},
                             {"result", result_of(group["schema"], test)}}
                       .dump()
                << "\n";
    }
  }
}

}  // namespace
}  // namespace fovea::text
