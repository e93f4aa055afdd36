// The input is the output of a reward program for two answers.

#include <cmath>

#include "base/files.h"
#include "fuzz.h"
#include "rewards/rewards.h"
#include "support/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  static const TemporaryFolder folder;
  static const std::string output = folder / "output";
  train::Prompt prompt;
  prompt.record = R"({"prompt": "a"})";
  write_file_atomically(output, text_of(data, size));
  const auto program = train::make_reward_program("cat '" + output + "'", 20);
  succeeds_soon([&] {
    const std::vector<double> rewards = (*program)({{&prompt, "b", 1}, {&prompt, "c", 1}});
    require(rewards.size() == 2 && std::isfinite(rewards[0]) && std::isfinite(rewards[1]),
            "each answer has a finite reward");
  });
  return 0;
}
