#include "fovea/evaluate.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "command.h"
#include "compare.h"
#include "files.h"
#include "progress.h"
#include "signals.h"
#include "terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class EvalCommand : public Command {
 public:
  EvalCommand()
      : Command("eval MODEL DATA... [OPTIONS]",
                "Measures how well a model predicts text: loss (nats per token), perplexity, bits "
                "per byte "
                "(comparable across tokenizers).") {}

  void declare(OptionTable& table) override {
    table.add(place("MODEL", {"-m", "--model", "--model-name-or-path"}, "model directory", model_));
    table.add(
        places("DATA", {"--data", "-f", "--file"}, "text files, folders or JSON lines", data_));
    table.add(text("--against", {},
                   "directory of the full model: tells how far MODEL's predictions are from its",
                   against_));
    table.add(choice("--dtype", {"--precision"},
                     "precision of MODEL's weights, automatic = as stored", precision_,
                     kWeightPrecisions));
  }

  int run(const OptionTable&) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (data_.empty()) throw UsageError("DATA: not given; expected text files or folders");
    catch_signals();
    if (!against_.empty()) return run_compare(model_, against_, precision_, data_, json);
    const Model model = open_model(model_, weight_precision(precision_));
    ProgressLine line;
    const Evaluation result = evaluate(model, data_, [&](double fraction) {
      line.show(fraction, "reading", fmt::format("read {:.0f}%", 100 * fraction));
      return !asked_to_stop();
    });
    line.clear();
    if (asked_to_stop()) return stop_code();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

 private:
  static std::string as_text(const Evaluation& r) {
    std::string out = fmt::format("loss           {:.6f} nats per token\nperplexity     {:.4f}\n",
                                  r.loss, r.perplexity);
    out += fmt::format("bits per byte  {:.6f}\ntokens         {}\nbytes          {}\n",
                       r.bits_per_byte, r.tokens, r.bytes);
    if (r.unknown > 0)
      out += fmt::format("unknown        {} characters that the vocabulary lacks\n", r.unknown);
    return out;
  }

  static std::string as_json(const Evaluation& r) {
    const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    return Json({{"loss", finite(r.loss)},
                 {"perplexity", finite(r.perplexity)},
                 {"bits_per_byte", finite(r.bits_per_byte)},
                 {"tokens", r.tokens},
                 {"bytes", r.bytes},
                 {"unknown", r.unknown}})
               .dump() +
           "\n";
  }

  std::string model_;
  std::string against_;
  int precision_ = 0;
  std::vector<std::string> data_;
};

}  // namespace

std::unique_ptr<Command> make_eval() { return std::make_unique<EvalCommand>(); }

}  // namespace fovea::cli
