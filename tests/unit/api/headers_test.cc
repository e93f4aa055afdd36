// The header of the whole C++ interface.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "fovea/fovea.h"

namespace fovea {
namespace {

TEST(Headers, OneHeaderIncludesAllOthers) {
  const std::string all = read_file("include/fovea/fovea.h");
  for (const auto& entry : std::filesystem::directory_iterator("include/fovea")) {
    const std::string name = entry.path().filename();
    if (name == "c.h" || name == "fovea.h") continue;
    EXPECT_NE(all.find("#include \"fovea/" + name + "\""), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace fovea
