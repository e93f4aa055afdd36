#include "fovea/translate.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command.h"
#include "files.h"
#include "progress.h"
#include "signals.h"
#include "terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class TranslateCommand : public Command {
 public:
  TranslateCommand()
      : Command("translate MODEL [OPTIONS] < SOURCE > TRANSLATION",
                "Translates line by line, in the order of the lines; a file of any size passes "
                "through. Only the translations go to standard output.") {}

  void declare(OptionTable& table) override {
    table.add(place("MODEL", {"-m", "--model", "--model-name-or-path"}, "model directory", model_));
    table.add(integer("--beams", {"-b", "--beam-size", "--num-beams"},
                      "hypotheses kept at a time; 1 = greedy", options_.beams, 1, 1024));
    table.add(number("--length-penalty", {"--normalize"},
                     "above 0 favours long translations (score / length ^ this)",
                     options_.length_penalty, -100, 100));
    table.add(integer("--n-best", {}, "write so many hypotheses of each line, with scores",
                      options_.best, 1, 1024));
    table.add(flag("--alignment", {}, "which word of the source each word came from",
                   options_.alignment));
    table.add(text("--force-decode", {"--prefix"}, "what every translation begins with",
                   options_.prefix));
    table.add(text("--source-prefix", {}, "in front of every source line", options_.source_prefix));
    table.add(
        text("--task", {},
             "instead: a task of the checkpoint's, such as translation_en_to_de, whose prefix "
             "config.json knows",
             options_.task));
    table.add(choice("--dtype", {"--precision"},
                     "precision of the model's weights; automatic = as stored", precision_,
                     kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(number("--max-length-factor", {},
                     "a translation has at most so many tokens for each of the source's",
                     options_.length_factor, 0.01, 1000));
    table.add(integer("--max-tokens", {"--max-length", "--max-new-tokens"},
                      "instead: at most so many tokens in all; 0 = by the factor",
                      options_.max_tokens, 0, 1 << 20));
    table.add(integer("--min-tokens", {"--min-length"}, "no end before these", options_.min_tokens,
                      0, 1 << 20));
    table.add(flag("--refuse-long", {},
                   "end at a line over the model's context instead of "
                   "cutting it",
                   options_.refuse_long));
    table.add(integer("--sequences", {}, "hypotheses computed at a time", options_.sequences, 1,
                      1 << 16));
  }

  int run(const OptionTable&) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (options_.best > options_.beams) {
      throw UsageError(fmt::format("--n-best: {}; expected at most {}, the beams", options_.best,
                                   options_.beams));
    }
    options_.sequences = std::max(options_.sequences, options_.beams);
    const Model model = open_model(model_, weight_precision(precision_), cache_precision(cache_));
    catch_signals();
    const auto start = std::chrono::steady_clock::now();
    translate(
        model, options_,
        [&]() -> std::optional<std::string> {
          std::string line;
          if (asked_to_stop() || !std::getline(std::cin, line)) return std::nullopt;
          if (!line.empty() && line.back() == '\r') line.pop_back();
          return line;
        },
        [&](const Translation& translation) {
          print(json ? as_json(translation) : as_text(translation));
          ++lines_;
          cut_ += translation.cut;
          tokens_ += std::ssize(translation.best[0].ids);
          return !asked_to_stop();
        });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (cut_ > 0) {
      note(fmt::format("note: {} lines were longer than the model's context of {} tokens and cut\n",
                       cut_, model.spec().context));
    }
    note(dim(fmt::format("{} lines, {} tokens, {:.1f} s, {} tokens/s\n", lines_, tokens_, seconds,
                         amount(seconds > 0 ? static_cast<double>(tokens_) / seconds : 0))));
    return asked_to_stop() ? stop_code() : 0;
  }

 private:
  // Marian's layout: line ||| translation ||| score, once there are several of a line.
  std::string as_text(const Translation& translation) const {
    std::string text;
    for (const Generation& one : translation.best) {
      if (options_.best > 1) text += fmt::format("{} ||| ", lines_);
      text += one_line(one.text);
      if (options_.alignment) text += " ||| " + pairs(translation);
      if (options_.best > 1) text += fmt::format(" ||| {:.4f}", one.score);
      text += '\n';
    }
    return text;
  }

  // A line of output for a line of input, whatever the model writes.
  static std::string one_line(std::string text) {
    for (char& c : text)
      if (c == '\n' || c == '\r') c = ' ';
    return text;
  }

  static std::string pairs(const Translation& translation) {
    std::string text;
    for (const auto& [source, target] : translation.alignment)
      text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
    return text;
  }

  std::string as_json(const Translation& translation) const {
    Json result = {{"translation", translation.best[0].text}, {"score", translation.best[0].score}};
    if (options_.best > 1) {
      for (const Generation& one : translation.best)
        result["best"].push_back({{"text", one.text}, {"score", one.score}, {"ids", one.ids}});
    }
    if (options_.alignment) result["alignment"] = translation.alignment;
    if (translation.cut) result["cut"] = true;
    return result.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string model_;
  TranslateOptions options_;
  int precision_ = 0, cache_ = 0;
  int64_t lines_ = 0, cut_ = 0, tokens_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_translate() { return std::make_unique<TranslateCommand>(); }

}  // namespace fovea::cli
