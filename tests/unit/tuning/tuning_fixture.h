#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files.h"
#include "support/temporary_folder.h"
#include "tuning/fine_tuning.h"

namespace fovea::tuning {

// A folder of jobs whose program is a script instead of `fovea`.
class TuningFolder {
 public:
  // In the script, $out is the value of --out. `plan` and `train` are run for the two commands.
  void set_program(const std::string& plan, const std::string& train) const {
    std::ofstream(program()) << "#!/bin/sh\n"
                                "out=; dry=; before=\n"
                                "for word; do\n"
                                "  [ \"$before\" = --out ] && out=$word\n"
                                "  [ \"$word\" = --dry-run ] && dry=1\n"
                                "  before=$word\n"
                                "done\n"
                                "if [ \"$dry\" ]; then\n"
                             << plan << "\nelse\nmkdir -p $out\n"
                             << train << "\nfi\n";
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  static std::string good_plan() { return "echo '{\"steps\": 4, \"trained_parameters\": 10}'"; }
  static std::string good_training() {
    return R"(mkdir -p $out/checkpoint-2 $out/checkpoint-4 $out/checkpoint-3
cat > $out/log.jsonl <<END
{"step":1,"loss":4.5,"learning_rate":0.1,"tokens":10}
{"step":2,"loss":3.5,"learning_rate":0.1,"tokens":20}
{"step":2,"eval_loss":3.25}
{"step":3,"loss":2.5,"learning_rate":0.1,"tokens":30}
{"step":4,"loss":1.5,"learning_rate":0.1,"tokens":40}
{"step":4,"eval_loss":1.25}
END)";
  }
  // Trains until it is stopped; then it ends as `fovea train` does. Once the file "go" exists, it
  // succeeds.
  std::string endless_training() const {
    return "trap 'exit 143' TERM\n[ -e " + root_ / "go" + " ] && exit 0\n: > " + root_ / "started" +
           "\nwhile :; do sleep 0.02; done";
  }

  RunnerOptions options() const {
    RunnerOptions options;
    options.folder = root_ / "jobs folder";
    options.bases = {{"base", "/models/base", ""}};
    options.judges = {{"judge", "/models/judge", ""}};
    options.most_bytes = 1 << 20;
    options.program = {program()};
    return options;
  }
  std::string program() const { return root_ / "program"; }
  std::string path(const std::string& name) const { return root_ / name; }
  bool has(const std::string& name) const { return is_file(root_ / name); }

  template <class Holds>
  static void wait_until(const Holds& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(holds());
  }
  static void wait_for(const FineTuning& tuning, const std::string& id, JobStatus status) {
    wait_until([&] { return tuning.job(id)->status == status; });
    EXPECT_STREQ(name_of(tuning.job(id)->status), name_of(status));
  }

 private:
  TemporaryFolder root_;
};

}  // namespace fovea::tuning
