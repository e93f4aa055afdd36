#include "base/nearest.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Nearest, AllowsOneEditPerThreeCharacters) {
  const std::vector<std::string> options = {"--steps", "--learning-rate", "--learn-rate", "--seed",
                                            "-n",      "--width",         "--data",       "--json"};
  EXPECT_EQ(nearest("--stesp", options), "--steps");
  EXPECT_EQ(nearest("--step", options), "--steps");
  EXPECT_EQ(nearest("--seeds", options), "--seed");
  EXPECT_EQ(nearest("--lernrate", options), "--learn-rate");
  EXPECT_EQ(nearest("--learn", options), "--learning-rate");  // its prefix
  EXPECT_EQ(nearest("-steps", options), "--steps");
  EXPECT_EQ(nearest("trian", {"train", "trace"}), "train");
}

TEST(Nearest, SuggestsNothingThatIsAnotherWord) {
  const std::vector<std::string> options = {"--steps", "--learning-rate", "--width", "--data",
                                            "--seed",  "--preset",        "--json",  "-n",
                                            "-q",      "--ids",           "--top",   "--dtype"};
  for (const char* word :
       {"--wandb", "--resume", "--gpu", "-ngl", "--fp16", "-x", "--jinja", "--fa", "--", "-", ""})
    EXPECT_EQ(nearest(word, options), "") << word;
}

}  // namespace
}  // namespace fovea
