#include "fovea/infer/translate.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/reports/classify_input.h"
#include "fovea/model/model_path.h"
#include "jobs/line_job.h"
#include "jobs/ranks.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "serve/protocols/beam_tree_json.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class TranslateCommand : public Command {
 public:
  TranslateCommand()
      : Command("translate MODEL [FILE...] [--out FILE] [OPTIONS]",
                "Translates files or standard input line by line, in order. Files may be of any "
                "size. Only translations are written to standard output.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_));
    table.add(input_arguments(files_));
    table.add(job_output(out_));
    add_fields(table, options_,
               {{"beams", {"-b", "--beam-size", "--num-beams"}},
                {"length_penalty", {"--normalize"}},
                {"best", {}, "--n-best"},
                {"prefix", {"--prefix"}, "--force-decode"},
                {"task", {}, "", "NAME"},
                {"source_language", {"--source-lang", "--src-lang"}, "", "LANGUAGE"},
                {"target_language", {"--target-lang", "--tgt-lang"}, "", "LANGUAGE"},
                {"terms", {"--glossary", "--terminology"}, "", "FILE"},
                {"markup", {}, "--keep-markup"},
                {"tree", {}, "--beam-tree"},
                {"length_factor", {}, "--max-length-factor"},
                {"max_tokens", {"--max-length", "--max-new-tokens"}},
                {"min_tokens", {"--min-length"}}});
    table.add(choice("--dtype", {"--precision"}, "precision of the weights; automatic = as stored",
                     precision_, kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(adapter_option(adapters_));
  }

  bool runs_on_ranks(const OptionTable&) const override { return true; }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (options_.best > options_.beams) {
      throw UsageError(
          fmt::format("--n-best: {} is out of range; expected at most {}, the number of beams",
                      options_.best, options_.beams));
    }
    require(table, options_.beams > 1, {"--length-penalty"}, "--beams above 1");
    require(table, json, {"--beam-tree"}, "--json");
    require(table, options_.max_tokens == 0, {"--max-length-factor"}, "no --max-tokens");
    options_.sequences = std::max(options_.sequences, options_.beams);
    const model::Model model = open_model(model_, weight_precision(precision_), cache_type(cache_),
                                          adapters_of(adapters_));
    jobs::LineJob job;
    job.files = files_;
    job.out = out_;
    job.key = decisive_options(table, {"--out", "--sequences", "--threads", "--strict"});
    job.key["model"] = model::model_fingerprint(model_);
    if (!adapters_.empty()) job.key["adapters"] = identity_of(adapters_of(adapters_));
    job.block_lines = jobs::Ranks::current() == nullptr ? kLinesAtOnce : kLinesOfRank;
    const auto start = std::chrono::steady_clock::now();
    const auto done = jobs::run_lines(
        job, [&](const jobs::LineBlock& block) { return translate_block(model, block); });
    if (!done) return stop_requested() ? stop_code() : 0;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (done->cut > 0) {
      note(
          fmt::format("warning: {} truncated to {} tokens, the model's context, the first at {}; "
                      "--refuse-long refuses such lines\n",
                      done->cut == 1 ? "1 line" : fmt::format("{} lines", done->cut),
                      model.spec().context, printable(done->first_cut)));
    }
    note(dim(fmt::format("{} lines, {} tokens, {:.1f} s, {} tokens/s\n", done->lines, done->tokens,
                         seconds,
                         amount(seconds > 0 ? static_cast<double>(done->tokens) / seconds : 0))));
    return 0;
  }

 private:
  // Lines that are sorted by length together; fewer with several ranks, so that all ranks have
  // work.
  static constexpr size_t kLinesAtOnce = 1024, kLinesOfRank = 256;

  jobs::BlockResult translate_block(const model::Model& model, const jobs::LineBlock& block) const {
    size_t read = 0, written = 0;
    jobs::BlockResult result;
    const std::vector<std::string> lines = texts_of(block);
    infer::TranslateOptions options = options_;
    options.name_of_line = [&](size_t i) { return block.name_of(i); };
    infer::translate(
        model, options,
        [&]() -> std::optional<std::string> {
          if (read == lines.size()) return std::nullopt;
          return lines[read++];
        },
        [&](const infer::Translation& translation) {
          result.bytes +=
              json ? as_json(model, translation) : as_text(translation, block.first + written);
          result.tokens += std::ssize(translation.best[0].ids);
          if (translation.cut && result.cut++ == 0) result.first_cut = block.name_of(written);
          ++written;
          return true;
        });
    return result;
  }

  // Marian's format: line ||| translation ||| alignment ||| score. The alignment is optional; line
  // and score are written for several hypotheses only.
  std::string as_text(const infer::Translation& translation, size_t line) const {
    std::string text;
    for (const infer::Generation& one : translation.best) {
      if (options_.best > 1) text += fmt::format("{} ||| ", line);
      text += one_line(one.text);
      if (options_.alignment) text += " ||| " + pairs(translation);
      if (options_.best > 1) text += fmt::format(" ||| {:.4f}", one.score);
      text += '\n';
    }
    return text;
  }

  // Replaces line breaks, so that each translation takes one line of output.
  static std::string one_line(std::string text) {
    for (char& c : text)
      if (c == '\n' || c == '\r') c = ' ';
    return text;
  }

  static std::string pairs(const infer::Translation& translation) {
    std::string text;
    for (const auto& [source, target] : translation.alignment)
      text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
    return text;
  }

  std::string as_json(const model::Model& model, const infer::Translation& translation) const {
    const infer::Generation& first = translation.best[0];
    Json result = {{"translation", first.text}, {"score", first.score}};
    if (options_.best > 1) {
      for (const infer::Generation& one : translation.best)
        result["best"].push_back({{"text", one.text}, {"score", one.score}, {"ids", one.ids}});
    }
    if (options_.alignment) result["alignment"] = translation.alignment;
    if (first.beam_tree != nullptr) {
      result["node"] = first.beam_node;
      result["tree"] = serve::beam_tree_json(*first.beam_tree, model.tokenizer());
    }
    if (translation.cut) result["cut"] = true;
    return json_line(result) + "\n";
  }

  std::string model_, out_;
  std::vector<std::string> adapters_;
  std::vector<std::string> files_;
  infer::TranslateOptions options_;
  int precision_ = 0, cache_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_translate() { return std::make_unique<TranslateCommand>(); }

}  // namespace fovea::cli
