#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cli/open_browser.h"
#include "cli/page_server.h"
#include "fovea/core/error.h"
#include "inspector/course.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

// A directory that is removed at the end.
class TemporaryModel {
 public:
  TemporaryModel() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fovea-learn-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error(ErrorKind::Failed,
                  pattern +
                      ": cannot be created; expected a writable directory for temporary "
                      "files, as named by TMPDIR");
    root_ = pattern;
  }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  ~TemporaryModel() {
    std::error_code none;
    std::filesystem::remove_all(root_, none);
  }
  std::string model() const { return (root_ / "course").string(); }

 private:
  std::filesystem::path root_;
};

class LearnCommand : public Command {
 public:
  LearnCommand()
      : Command("learn [OPTIONS]",
                "Serves the inspector's page with a course on Transformers, on a small trained "
                "model that the program carries. With --out, writes this model to a directory, "
                "for the commands of the course.") {}

  void declare(OptionTable& table) override {
    table.add(as("DIR", text("--out", {"-o", "--output"},
                             "write the model of the course to this directory, and exit", out_)));
    table.add(integer("--port", {"-p"}, "port of the page; 0 = any free port", port_, 0, 65535));
    table.add(flag("--no-browser", {}, "print the address without opening a browser", quiet_));
  }

  int run(const OptionTable&) override {
    if (!out_.empty()) {
      if (std::filesystem::exists(out_))
        throw UsageError("--out: '" + out_ + "' exists; expected a new directory");
      inspector::write_course_model(out_);
      print(json ? nlohmann::ordered_json({{"out", out_}}).dump() + "\n" : out_ + "\n");
      return 0;
    }
    const TemporaryModel temporary;
    inspector::write_course_model(temporary.model());
    catch_signals("stopping (press again to stop immediately)");
    const PageServer page({temporary.model()}, port_);
    const std::string address = page.address() + "#view=course";
    print(json ? nlohmann::ordered_json({{"address", address}}).dump() + "\n" : address + "\n");
    note("Press Ctrl-C to stop.\n");
    if (!quiet_) open_browser(address);
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return stop_code();
  }

 private:
  std::string out_;
  int64_t port_ = 0;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_learn() { return std::make_unique<LearnCommand>(); }

}  // namespace fovea::cli
