#include "fovea/doctor.h"
#include "fovea/core/machine.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "options/common_options.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class DoctorCommand : public Command {
 public:
  DoctorCommand()
      : Command("doctor [DIR]",
                "Checks this machine; with DIR, also whether the model in that directory is "
                "complete. The exit code is 1 if a problem is found.") {}

  void declare(OptionTable& table) override {
    table.add(of_model(positional("DIR", {"-m", "--model"}, "model directory to check", folder_)));
  }

  int run(const OptionTable&) override {
    bool good = true;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    std::string lines;
    for (const Finding& finding : doctor(folder_)) {
      good = good && finding.good;
      lines += fmt::format("{} {:<18} {}\n", finding.good ? "ok   " : "WRONG", finding.topic,
                           printable(finding.message));
      all.push_back(
          {{"topic", finding.topic}, {"message", finding.message}, {"good", finding.good}});
    }
    const nlohmann::ordered_json report = {
        {"version", version()}, {"good", good}, {"findings", all}};
    print(json ? report.dump() + "\n" : lines);
    return good ? 0 : 1;
  }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> make_doctor() { return std::make_unique<DoctorCommand>(); }

}  // namespace fovea::cli
