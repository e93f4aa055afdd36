#include "fovea/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class TraceCommand : public Command {
 public:
  TraceCommand()
      : Command(
            "trace MODEL (--text TEXT | --ids 1,2,3 | --input FILE.safetensors) (--out "
            "FILE.safetensors | --list)",
            "Runs a model once and writes its intermediate results: logits, hidden.{i}, "
            "attention.{i}, further values by --what, loss (with labels or --gradients) and "
            "grad.<tensor> (with --gradients). In an encoder-decoder, names begin with encoder_, "
            "decoder_ or cross_. --patch replaces values during the run. Prints the names of the "
            "written tensors.") {}

  void declare(OptionTable& table) override {
    table.add(model_place(model_));
    table.add(adapter_option(adapters_));
    add_fields(table, options_,
               {{"text", {"-p", "--prompt"}},
                {.field = "input", .aliases = {"-i"}, .placeholder = "FILE"},
                {.field = "what", .placeholder = "NAMES"},
                {.field = "layers", .placeholder = "A-B"},
                {.field = "patch", .placeholder = "FILE"},
                {.field = "out", .aliases = {"-o", "--output"}, .placeholder = "FILE"}});
    table.add(flag("--list", {},
                   "print the names and shapes of all values, or of those of --what, without "
                   "writing a file",
                   list_));
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const int inputs = table.given("--text") + table.given("--ids") + table.given("--input");
    if (inputs != 1) throw UsageError("--text, --ids, --input: expected exactly one of them");
    if (options_.out.empty() != list_)
      throw UsageError("--out, --list: expected an output file or --list");
    const Model model = open_model(model_, WeightPrecision::full, CachePrecision::automatic,
                                   adapters_of(adapters_));
    const bool one_stack = !model.spec().encoder || !model.spec().decoder;
    if (list_ && options_.what.empty()) {
      options_.what = {"*"};
      // Models with two stacks have no aliases.
      if (one_stack) options_.what.emplace_back("*hook*");
    }
    const std::vector<TracedTensor> tensors = trace(model, options_);
    print(json ? as_json(tensors) : as_text(tensors));
    return 0;
  }

 private:
  std::string as_json(const std::vector<TracedTensor>& tensors) const {
    Json names = Json::array(), shapes = Json::array();
    for (const TracedTensor& tensor : tensors) {
      names.push_back(tensor.name);
      shapes.push_back(tensor.shape);
    }
    Json result;
    if (!list_) result["out"] = options_.out;
    result["tensors"] = names;
    result["shapes"] = shapes;
    return result.dump() + "\n";
  }

  std::string as_text(const std::vector<TracedTensor>& tensors) const {
    std::string lines;
    for (const TracedTensor& tensor : tensors)
      lines += list_ ? fmt::format("{} [{}]\n", tensor.name, fmt::join(tensor.shape, ", "))
                     : tensor.name + "\n";
    return lines;
  }

  std::string model_;
  std::vector<std::string> adapters_;
  TraceOptions options_;
  bool list_ = false;
};

}  // namespace

std::unique_ptr<Command> make_trace() { return std::make_unique<TraceCommand>(); }

}  // namespace fovea::cli
