#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "options/fetch_model.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class PullCommand : public Command {
 public:
  PullCommand()
      : Command("pull NAME... [--revision REV] [OPTIONS]",
                "Fetches models from the Hugging Face Hub into its cache, which other programs "
                "share, and prints their paths. Only files that fovea reads are fetched, and each "
                "is verified by its hash. An interrupted pull goes on where it was.") {}

  void declare(OptionTable& table) override {
    table.add(positionals("NAME", {},
                          "USER/NAME, hf:USER/NAME:Q4_K_M for one of several quantisations, or "
                          "the address of a repository or of one of its files",
                          names_));
    table.add(as("REV", text("--revision", {}, "branch, tag or commit; unset: main", revision_)));
    table.add(flag("--dataset", {}, "NAME is a data set; its text files and tables are fetched",
                   dataset_));
    table.add(flag("--dry-run", {}, "print what would be fetched, and stop", dry_run_));
  }

  int run(const OptionTable&) override {
    if (names_.empty()) throw UsageError("NAME: not given; expected a model such as USER/NAME");
    const model::HubSettings settings = hub_settings();
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const std::string& typed : names_) {
      const model::HubPlan plan = model::plan_pull(name_of(typed, settings), settings);
      note(summary_of(plan));
      nlohmann::ordered_json files = nlohmann::ordered_json::array();
      for (const model::HubFile& file : plan.files)
        files.push_back({{"path", file.path},
                         {"bytes", file.bytes},
                         {"hash", file.hash},
                         {"cached", file.cached}});
      nlohmann::ordered_json one = {{"name", model::text_of(plan.name)},
                                    {"commit", plan.commit},
                                    {"licence", plan.licence},
                                    {"bytes", plan.bytes()},
                                    {"files", files}};
      if (!dry_run_) one["path"] = fetch(plan, settings);
      if (json) {
        all.push_back(one);
      } else if (dry_run_) {
        for (const model::HubFile& file : plan.files)
          print(fmt::format("{:>12}  {}{}\n", file.bytes, printable(file.path),
                            file.cached ? "  (in the cache)" : ""));
      } else {
        print(one["path"].get<std::string>() + "\n");
      }
    }
    if (json) print(json_line({{"models", all}}) + "\n");
    return 0;
  }

 private:
  model::HubName name_of(const std::string& typed, const model::HubSettings& settings) const {
    std::optional<model::HubName> name = model::parse_hub_name(typed, settings);
    if (!name) name = model::parse_hub_name("hf:" + typed, settings);  // such as gpt2
    if (dataset_) name->dataset = true;
    if (revision_.empty()) return *name;
    if (name->revision != "main")
      throw UsageError("--revision: " + typed + " has a revision too; expected one of them");
    name->revision = revision_;
    if (!model::parse_hub_name(model::text_of(*name), settings))
      throw UsageError("--revision: " + revision_ + ": expected a branch, a tag or a commit");
    return *name;
  }

  std::vector<std::string> names_;
  std::string revision_;
  bool dataset_ = false, dry_run_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pull() { return std::make_unique<PullCommand>(); }

}  // namespace fovea::cli
