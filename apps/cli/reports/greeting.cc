#include "cli/reports/greeting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine.h"
#include "cli/reports/model_list.h"
#include "fovea/core/machine.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr double kBytesPerWeight = 0.6;  // in 4 bits, with scales, keys and values
constexpr double kBillion = 1e9;
constexpr size_t kMostListed = 5;

std::string models_on_disk() {
  std::vector<ListedModel> models = listed_models(model::hub_settings());
  std::erase_if(models, [](const ListedModel& each) {
    return each.repository.path.empty() || each.repository.dataset;
  });
  if (models.empty()) return "";
  std::string text = "\nModels on this disk ('fovea models' lists all):\n";
  for (size_t i = 0; i < std::min(kMostListed, models.size()); ++i)
    text += fmt::format("    {:<44} {:>9}  {}\n", printable(models[i].repository.name),
                        memory(static_cast<double>(models[i].repository.bytes)), models[i].use);
  return text;
}

}  // namespace

std::string greeting() {
  const auto free = static_cast<double>(available_memory());
  return fmt::format(
             "fovea {} trains, runs and inspects Transformers on this machine:\n"
             "    {}, {} threads, {}; {} of free memory,\n"
             "    enough for models of up to {:.0f} billion parameters in 4 bits\n\n"
             "To try:\n"
             "    fovea learn                                # a course on Transformers, for "
             "beginners\n"
             "    fovea chat hf:Qwen/Qwen3-0.6B-GGUF:Q8_0    # fetch a model of 640 MB and chat "
             "with it\n"
             "    fovea train book.txt --out model           # train a small model on a text\n"
             "    fovea generate model \"Once upon a time\"    # continue a text with it\n"
             "    fovea inspect model                        # look at its attention in the "
             "browser\n",
             version(), cpu_name(), thread_count(), instruction_set(), memory(free),
             free / kBytesPerWeight / kBillion) +
         models_on_disk() + "\n'fovea --help' lists all verbs.\n";
}

}  // namespace fovea::cli
