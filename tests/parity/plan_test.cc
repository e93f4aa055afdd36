// Compares the counts of a plan, made from config.json alone, with the opened model.

#include "fovea/train/plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "fovea/model/model.h"
#include "support/shared_folder.h"

namespace fovea {
namespace {

TEST(Plan, CountsTheTensorsOfCheckpoints) {
  int counted = 0;
  for (const std::string& parent : {shared("fixtures/models"), std::string("tests/goldens")}) {
    if (!std::filesystem::is_directory(parent)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(parent)) {
      const std::string folder = entry.path();
      if (!std::filesystem::exists(folder + "/config.json")) continue;
      EXPECT_EQ(train::plan(model::read_model_spec(folder)).parameters,
                model::Model::open(folder).parameters())
          << folder;
      ++counted;
    }
  }
  EXPECT_GT(counted, 0);
}

}  // namespace
}  // namespace fovea
