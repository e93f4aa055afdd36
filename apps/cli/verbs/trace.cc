#include "fovea/trace.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "options/common_options.h"
#include "options/open_model.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> parse_ids(const std::string& typed) {
  std::vector<int32_t> ids;
  const char* at = typed.data();
  const char* const end = at + typed.size();
  while (true) {
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || (stop != end && *stop != ',')) {
      throw UsageError(fmt::format(
          "--ids: \"{}\" is not a list of token ids; expected ids such as 1,2,3", typed));
    }
    ids.push_back(id);
    if (stop == end) return ids;
    at = stop + 1;
  }
}

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
    table.add(text("--text", {"-p", "--prompt"}, "input text", options_.text));
    table.add(as("N,...", text("--ids", {}, "input token ids, such as 1,2,3", ids_)));
    table.add(as("FILE", text("--input", {"-i"},
                              "file with input_ids and optionally attention_mask, token_type_ids "
                              "and labels; or with pixel_values, input_features or waveform",
                              options_.input)));
    table.add(flag("--gradients", {}, "also write the loss and the gradient of every weight",
                   options_.gradients));
    table.add(as("FILE", text("--out", {"-o", "--output"}, "output file", options_.out)));
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const int inputs = table.given("--text") + table.given("--ids") + table.given("--input");
    if (inputs != 1) throw UsageError("--text, --ids, --input: expected exactly one of them");
    if (options_.out.empty()) throw UsageError("--out: not given; expected an output file");
    if (table.given("--ids")) options_.ids = parse_ids(ids_);
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
  std::string model_, ids_;
  TraceOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_trace() { return std::make_unique<TraceCommand>(); }

}  // namespace fovea::cli
