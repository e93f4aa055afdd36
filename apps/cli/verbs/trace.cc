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
            "trace MODEL (--text TEXT | --ids 1,2,3 | --input FILE.safetensors) --out "
            "FILE.safetensors",
            "Runs a model once and writes its intermediate results: logits, hidden.{i}, "
            "attention.{i}, loss (with labels or --gradients) and grad.<tensor> (with "
            "--gradients). In an encoder-decoder, the names of hidden and attention begin with "
            "encoder_ or decoder_. Prints the names of the written tensors.") {}

  void declare(OptionTable& table) override {
    table.add(model_place(model_));
    add_fields(table, options_,
               {{"text", {"-p", "--prompt"}},
                {"input", {"-i"}, "", "FILE"},
                {"out", {"-o", "--output"}, "", "FILE"}});
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const int inputs = table.given("--text") + table.given("--ids") + table.given("--input");
    if (inputs != 1) throw UsageError("--text, --ids, --input: expected exactly one of them");
    if (options_.out.empty()) throw UsageError("--out: not given; expected an output file");
    const std::vector<std::string> names = trace(open_model(model_), options_);
    if (json) {
      print(Json({{"out", options_.out}, {"tensors", names}}).dump() + "\n");
    } else {
      std::string lines;
      for (const std::string& name : names) lines += name + "\n";
      print(lines);
    }
    return 0;
  }

 private:
  std::string model_;
  TraceOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_trace() { return std::make_unique<TraceCommand>(); }

}  // namespace fovea::cli
