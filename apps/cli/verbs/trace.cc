#include "fovea/study/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/reports/circuits.h"
#include "cli/reports/explained.h"
#include "cli/verbs/images.h"
#include "fovea/open.h"
#include "fovea/study/explain.h"
#include "inspector/explanation_json.h"
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
            "trace MODEL (--text TEXT | --ids 1,2,3 | --input FILE.safetensors | --image FILE) "
            "(--out FILE | --list | --explain | --neurons | --answers A,B | --circuit "
            "LAYER.HEAD | --steer LAYER)",
            "Runs a model once and writes its intermediate results: logits, hidden.{i}, "
            "attention.{i}, further values by --what, loss (with labels or --gradients) and "
            "grad.<tensor> (with --gradients). In an encoder-decoder, names begin with encoder_, "
            "decoder_ or cross_. --patch replaces values during the run. Prints the names of the "
            "written tensors. With --explain, prints instead what the next token, or what a "
            "classifier finds (a label, entities, masked words), rests on: the contributions of "
            "the text's tokens. --neurons, --answers, --circuit and --steer print what neurons and "
            "heads add to the predictions.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_));
    table.add(adapter_option(adapters_));
    table.add(mute_option(muted_));
    add_fields(table, options_,
               {{"text", {"-p", "--prompt"}},
                {.field = "input", .aliases = {"-i"}, .placeholder = "FILE"},
                {.field = "image", .placeholder = "FILE"},
                {.field = "what", .placeholder = "NAMES"},
                {.field = "layers", .placeholder = "A-B"},
                {.field = "patch", .placeholder = "FILE"},
                {.field = "out", .aliases = {"-o", "--output"}, .placeholder = "FILE"}});
    table.add(flag("--list", {},
                   "print the names and shapes of all values, or of those of --what, without "
                   "writing a file",
                   list_));
    add_fields(
        table, explain_,
        explain_spellings(
            {.field = "method", .name = "--explain", .placeholder = "[METHOD]", .implied = "all"}));
    circuits_.declare(table);
    table.show_only({"MODEL", "--adapter", "--text", "--ids", "--input", "--image", "--what",
                     "--layers", "--patch", "--gradients", "--out", "--list", "--explain",
                     "--neurons", "--answers", "--other", "--circuit", "--steer"});
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const int inputs = table.given("--text") + table.given("--ids") + table.given("--input");
    const bool image = table.given("--image");
    if (inputs != 1 && (!image || inputs > 1))
      throw UsageError("--text, --ids, --input: expected exactly one of them");
    check_explain_options(table);
    if (table.given("--explain")) return explain_text(table);
    if (circuits_.requested(table, {"--input", "--image", "--what", "--layers", "--patch",
                                    "--gradients", "--out", "--list"})) {
      print(circuits_.report(opened(), text_input(), json));
      return 0;
    }
    if (options_.out.empty() != list_)
      throw UsageError("--out, --list: expected an output file or --list");
    if (image && model_use(model_) == ModelUse::images) {
      if (table.given("--mute"))
        throw UsageError(fmt::format("--mute: {} reads images; expected a model of texts", model_));
      const infer::ImageModel model =
          open_image_model(model_, model::WeightPrecision::full, adapters_of(adapters_));
      select_all(model.spec());
      show(study::trace(model, options_));
      return 0;
    }
    const model::Model model = opened();
    select_all(model.spec());
    show(study::trace(model, options_));
    return 0;
  }

 private:
  // Without --what, --list lists all values.
  void select_all(const model::Spec& spec) {
    if (!list_ || !options_.what.empty()) return;
    options_.what = {"*"};
    // Models with two stacks have no aliases.
    if (!spec.encoder || !spec.decoder) options_.what.emplace_back("*hook*");
  }

  void show(const std::vector<study::TracedTensor>& tensors) const {
    print(json ? as_json(tensors) : as_text(tensors));
  }

  int explain_text(const OptionTable& table) const {
    for (const char* option : {"--input", "--image", "--what", "--layers", "--patch", "--gradients",
                               "--out", "--list", "--neurons", "--answers", "--circuit", "--steer"})
      if (table.given(option))
        throw UsageError(fmt::format("{}: cannot be combined with --explain", option));
    const model::Model model = opened();
    if (model.spec().head.kind == model::HeadKind::span)
      throw UsageError(fmt::format(
          "--explain: {} answers questions about a text; expected fovea classify MODEL QUESTION "
          "--context TEXT --explain",
          model_));
    infer::ClassifyOptions how;
    how.name_of_text = [](size_t) { return "--text"; };
    const std::vector<study::Explanation> all = study::explain(model, text_input(), explain_, how);
    if (all.empty()) note("No entities in the text.\n");
    std::vector<std::string> shown;
    for (const study::Explanation& one : all)
      shown.push_back(json ? json_line(inspector::explanation_json(one)) + "\n"
                           : explanation_text(one, explain_, bar_style(false)));
    print(fmt::format("{}", fmt::join(shown, json ? "" : "\n")));
    return 0;
  }

  model::Model opened() const {
    return without_heads(
        open_model(model_, model::WeightPrecision::full, {}, adapters_of(adapters_)), muted_);
  }

  study::InspectInput text_input() const {
    study::InspectInput input;
    input.text = options_.text;
    input.ids = options_.ids;
    return input;
  }

  std::string as_json(const std::vector<study::TracedTensor>& tensors) const {
    Json names = Json::array(), shapes = Json::array();
    for (const study::TracedTensor& tensor : tensors) {
      names.push_back(tensor.name);
      shapes.push_back(tensor.shape);
    }
    Json result;
    if (!list_) result["out"] = options_.out;
    result["tensors"] = names;
    result["shapes"] = shapes;
    return result.dump() + "\n";
  }

  std::string as_text(const std::vector<study::TracedTensor>& tensors) const {
    std::string lines;
    for (const study::TracedTensor& tensor : tensors)
      lines += list_ ? fmt::format("{} [{}]\n", tensor.name, fmt::join(tensor.shape, ", "))
                     : tensor.name + "\n";
    return lines;
  }

  std::string model_;
  std::vector<std::string> adapters_, muted_;
  study::TraceOptions options_;
  study::ExplainOptions explain_;
  CircuitReport circuits_;
  bool list_ = false;
};

}  // namespace

std::unique_ptr<Command> make_trace() { return std::make_unique<TraceCommand>(); }

}  // namespace fovea::cli
