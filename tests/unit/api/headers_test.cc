// The header of the whole C++ interface.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "fovea/fovea.h"

namespace fovea {
namespace {

// Headers of folders are in the header of the folder, such as fovea/nn.h.
TEST(Headers, OneHeaderIncludesAllOthers) {
  std::string all = read_file("include/fovea/fovea.h");
  for (const char* folder : {"core", "nn"}) {
    EXPECT_NE(all.find(std::string("#include \"fovea/") + folder + ".h\""), std::string::npos);
    all += read_file(std::string("include/fovea/") + folder + ".h");
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator("include/fovea")) {
    const std::string name = std::filesystem::relative(entry.path(), "include");
    // The interface of C, this header, and one that needs the header of another library.
    if (entry.is_directory() || name == "fovea/c.h" || name == "fovea/fovea.h" ||
        name == "fovea/core/dlpack.h" || name == "fovea/core/op_options.h")
      continue;
    EXPECT_NE(all.find("#include \"" + name + "\""), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace fovea
