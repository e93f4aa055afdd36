// A directory of an unknown kind is compared with the families, and what differs is named.

#include "loading/nearest_family.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/golden_folder.h"

namespace fovea::model {
namespace {

constexpr const char* kConfig = "config.json";

// A golden directory whose model_type is not known.
struct MysteryFolder : GoldenFolder {
  explicit MysteryFolder(const std::string& golden) : GoldenFolder(golden) {
    set(kConfig, "model_type", "mystery");
    set(kConfig, "architectures", nlohmann::json::array({"MysteryForCausalLM"}));
  }
};

bool has(const std::string& line, const std::string& part) {
  return line.find(part) != std::string::npos;
}

TEST(NearestFamily, IsTheOneOfTheSameNamesAndKeys) {
  const auto lines = compare_with_families(MysteryFolder("starcoder2").path());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(has(lines[0], "starcoder2: has 19 of 19 names of tensors")) << lines[0];
  EXPECT_TRUE(has(lines[1], "has its keys and tensors")) << lines[1];
}

TEST(NearestFamily, NamesUnknownKeysAndWrongShapes) {
  const MysteryFolder folder("starcoder2");
  folder.set(kConfig, "logit_scale", 0.5);
  folder.set(kConfig, "use_everything", true);
  folder.set(kConfig, "intermediate_size", 41);
  const auto lines = compare_with_families(folder.path());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(has(lines[1], "starcoder2 has no such keys or values: logit_scale, use_everything"))
      << lines[1];
  EXPECT_TRUE(has(lines[2], "mlp.c_fc.weight") && has(lines[2], "41")) << lines[2];
}

TEST(NearestFamily, NamesMissingKeys) {
  const MysteryFolder folder("starcoder2");
  folder.set(kConfig, "hidden_size", absent);
  const auto lines = compare_with_families(folder.path());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(has(lines[1], "hidden_size is missing")) << lines[1];
}

TEST(NearestFamily, IsSilentAboutKnownKindsAndOtherFolders) {
  EXPECT_TRUE(compare_with_families("tests/goldens/gpt2_relu").empty());
  const TemporaryFolder folder;
  EXPECT_TRUE(compare_with_families(folder.path()).empty());
  write_file_atomically(folder / kConfig, "[1]");
  EXPECT_TRUE(compare_with_families(folder.path()).empty());
}

}  // namespace
}  // namespace fovea::model
