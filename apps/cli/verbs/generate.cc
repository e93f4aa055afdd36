#include "fovea/infer/generate.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/reports/alternatives.h"
#include "cli/reports/prompt_images.h"
#include "cli/verbs/generate_prompts.h"
#include "fovea/core/machine.h"
#include "fovea/model/model_path.h"
#include "fovea/text/chat.h"
#include "fovea/text/text_lines.h"
#include "options/common_options.h"
#include "options/generation_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPromptBytes = 64 << 20;  // exceeds any context, and limits the memory

// Returns whether standard input is a pipe, a regular file or a socket, which is read as the
// prompt. A terminal or /dev/null is not read.
bool input_is_piped() {
  struct stat status = {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

class GenerateCommand : public Command {
 public:
  GenerateCommand()
      : Command(
            "generate MODEL [TEXT | -f FILE | --ids 5,9,2 | --prompts FILE.jsonl | < FILE] "
            "[OPTIONS]",
            "Continues a prompt with a model. Only the continuation is written to standard output. "
            "One newline at the end of a file or of piped text is not part of the prompt.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_, "model directory or .gguf file"));
    table.add(positional("TEXT", {}, "the prompt", positional_prompt_));
    table.add(text("--prompt", {"-p"}, "the prompt", prompt_));
    table.add(as("FILE",
                 text("--file", {"-f", "-i", "--input"}, "file that contains the prompt", file_)));
    table.add(integers("--ids", {}, "token ids of the prompt, such as 5,9,2", ids_, 0, kLargestId));
    table.add(flag("--parse-special", {},
                   "parse names of special tokens in the prompt as special tokens",
                   parse_special_));
    images_.declare(table);
    table.add(flag("--echo", {}, "also print the prompt", echo_));
    table.add(choice("--dtype", {"--precision"}, "precision of the weights; automatic = as stored",
                     precision_, kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(adapter_option(adapters_));
    table.add(mute_option(muted_));
    table.add(mmproj_option(mmproj_));
    table.add(as("FILE", text("--prompt-cache", {},
                              "file that keeps the keys and values of the prompt, which the next "
                              "call with the same beginning then does not compute",
                              cache_file_)));
    generation_.declare(table);
    table.section("Results");
    table.add(
        integer("--alternatives", {},
                "print the N most likely tokens at the position --at, and the text that follows "
                "each of them; 0 = off",
                alternatives_, 0, 1024));
    table.add(integer("--at", {},
                      "--alternatives: position in the generated text, in tokens from 1", at_, 1,
                      kLargestId));
    prompts_.declare(table);
    table.show_only({"MODEL",         "TEXT",          "--prompt",      "--prompts",
                     "--out",         "--file",        "--ids",         "--image",
                     "--echo",        "--dtype",       "--cache-dtype", "--predict",
                     "--stop",        "--temperature", "--top-k",       "--top-p",
                     "--greedy",      "--seed",        "--draft",       "--speculative-tokens",
                     "--generations", "--beams"});
  }

  void apply(OptionTable& table) override {
    table_ = &table;
    Command::apply(table);
  }

  bool runs_on_ranks(const OptionTable& table) const override { return table.given("--prompts"); }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    prompts_.check(table);
    if (prompts_.given()) return answer_file(table);
    const int sources = table.given("TEXT") + table.given("--prompt") + table.given("--file") +
                        table.given("--ids");
    if (sources > 1)
      throw UsageError("TEXT, --prompt, --file, --ids: cannot be combined; expected one of them");
    if (table.given("TEXT")) prompt_ = positional_prompt_;
    if (alternatives_ == 0 && table.given("--at"))
      throw UsageError("--at: requires --alternatives");
    if (!table.given("--ids")) read_prompt(table);
    if (images_.given() && (table.given("--ids") || alternatives_ > 0))
      throw UsageError("--image: cannot be combined with --ids or --alternatives");
    require(table, !table.given("--ids"), {"--parse-special"}, "no --ids");
    images_.find();
    const model::WeightPrecision precision = weight_precision(precision_);
    const model::Model model = without_heads(
        open_model(model_, precision, cache_type(cache_), adapters_of(adapters_), mmproj_), muted_);
    generation_.settle(model, precision, *table_);
    infer::GenerateOptions& options = generation_.options;
    if (alternatives_ > 0 && (options.generations > 1 || options.beams > 1))
      throw UsageError("--alternatives: cannot be combined with --generations or --beams");
    require(table, json, {"--logprobs"}, "--json");
    require(table, alternatives_ == 0, {"--prompt-cache", "--logprobs", "--echo"},
            "no --alternatives");
    require(table, images_.given(), {"--frames"}, "--image");
    options.constrain = generation_.grammar.constraint(model, options.max_tokens);
    if (!table.given("--ids") && is_terminal(Channel::error) &&
        text::ModelChat::has_template(model_))
      note(dim("note: the model has a chat template; fovea chat holds conversations with it") +
           "\n");
    return write(model);
  }

 private:
  static constexpr int64_t kLargestId = std::numeric_limits<int32_t>::max();

  int answer_file(const OptionTable& table) {
    if (table.given("--seed") && table.find("--seed")->get() == "-1")
      throw UsageError("--seed: -1 is another seed each time; expected a number with --prompts");
    const model::WeightPrecision precision = weight_precision(precision_);
    const model::Model model = without_heads(
        open_model(model_, precision, cache_type(cache_), adapters_of(adapters_), mmproj_), muted_);
    generation_.settle(model, precision, *table_);
    nlohmann::ordered_json key =
        decisive_options(table, {"--prompts", "--out", "--parallel", "--threads", "--strict",
                                 "--draft", "--draft-tokens", "--speculative-tokens"});
    key["model"] = model::model_fingerprint(model_);
    if (!adapters_.empty()) key["adapters"] = identity_of(adapters_of(adapters_));
    const uint64_t seed = table.given("--seed") ? generation_.options.sampling.seed : 0;
    return prompts_.run(
        {model_, model, generation_.draft, generation_.options, table.given("--predict"), seed},
        key);
  }

  void read_prompt(const OptionTable& table) {
    if (table.given("TEXT") || table.given("--prompt")) return;
    if (!table.given("--file")) {
      if (!input_is_piped()) return;
      file_ = "-";
    }
    prompt_ = text::read_text(file_, kPromptBytes);
    if (!prompt_.empty() && prompt_.back() == '\n') prompt_.pop_back();
  }

  void warn_unknown(const model::Model& model) const {
    if (!model.has_tokenizer()) return;
    const std::vector<std::string> unknown = model.tokenizer().unknown(prompt_);
    if (unknown.empty()) return;
    std::string named;
    constexpr size_t kNamed = 20;  // enough to recognise the kind of text
    for (size_t i = 0; i < std::min(unknown.size(), kNamed); ++i)
      named += " \"" + unknown[i] + "\"";
    note(fmt::format("note: {} characters of the prompt are not in the model's vocabulary:{}{}\n",
                     unknown.size(), printable(named), unknown.size() > kNamed ? " ..." : ""));
  }

  // A prompt that is not a text is an error of the file.
  infer::ImagePrompt encoded(const model::Model& model) const {
    try {
      if (images_.given() || (infer::reads_images(model) && infer::image_marks(model, prompt_) > 0))
        return images_.prompt(model, prompt_, text::SpecialTokens::parsed);
      return {infer::prompt_ids(
          model, prompt_,
          parse_special_ ? text::SpecialTokens::parsed : text::SpecialTokens::as_text)};
    } catch (const FieldError& error) {
      if (file_.empty()) throw;
      const std::string name = file_ == "-" ? "standard input" : file_;
      throw Error(error.kind(), name + std::string(error.what()).substr(error.field().size()));
    }
  }

  int write(const model::Model& model) {
    catch_signals();
    const infer::GenerateOptions& options = generation_.options;
    bool closed = false;
    std::string last = "\n";
    const auto put = [&](std::string_view piece) {
      if (json || closed || piece.empty()) return;
      try {
        print(is_terminal(Channel::output) ? printable(piece) : std::string(piece));
      } catch (const OutputClosed&) {
        closed = true;
      }
      last = piece.back();
    };
    if (echo_) put(prompt_);
    const bool streams = options.generations == 1 && options.beams == 1 && model.has_tokenizer();
    const auto sink = [&](std::string_view piece) {
      if (streams) put(piece);
      return !closed && !stop_requested();
    };
    infer::ImagePrompt prompt{{ids_.begin(), ids_.end()}};
    if (prompt.ids.empty()) {
      prompt = encoded(model);
      warn_unknown(model);
    }
    const std::vector<int32_t>& ids = prompt.ids;
    const int64_t context = model.spec().context;
    if (!model.spec().encoder && std::ssize(ids) > context && !prompt.images)
      note(
          fmt::format("note: the prompt has {} tokens, more than the model's context of {}: its "
                      "beginning is dropped\n",
                      ids.size(), context));
    if (alternatives_ > 0) return write_alternatives(model, ids);
    const model::Model* const draft = generation_.draft ? &*generation_.draft : nullptr;
    infer::PromptCache cache{cache_file_, ""};
    if (!cache_file_.empty())
      cache.identity = fmt::format("{:016x} {} {} {}{}", model::model_fingerprint(model_),
                                   precision_, instruction_set(),
                                   identity_of(adapters_of(adapters_)), fmt::join(muted_, " "));
    const std::vector<infer::Generation> generations = infer::generate(
        model, prompt, options, sink, draft, cache_file_.empty() ? nullptr : &cache);
    if (json) print(as_json(generations));
    for (const infer::Generation& generation : generations) {
      if (streams) break;
      put(model.has_tokenizer() ? generation.text
                                : fmt::format("{}", fmt::join(generation.ids, ",")));
      if (last != "\n") put("\n");
    }
    if (last != "\n") put("\n");
    report(generations);
    return stop_requested() ? stop_code() : 0;
  }

  int write_alternatives(const model::Model& model, const std::vector<int32_t>& ids) const {
    const auto sink = [](std::string_view) { return !stop_requested(); };
    const auto all = alternatives(model, ids, generation_.options, alternatives_, at_, sink);
    const std::string text = alternatives_text(model, all);
    print(json                           ? alternatives_json(model, all, at_)
          : is_terminal(Channel::output) ? printable(text)
                                         : text);
    return stop_requested() ? stop_code() : 0;
  }

  // The fields of a single generation are members of the object itself; several generations are
  // listed in "generations".
  std::string as_json(const std::vector<infer::Generation>& generations) const {
    Json result = {{"prompt", prompt_}};
    if (!ids_.empty()) result = {{"prompt_ids", ids_}};
    const infer::Generation& first = generations.front();
    if (generations.size() == 1) {
      result.update(generation_json(first));
    } else {
      for (const infer::Generation& generation : generations)
        result["generations"].push_back(generation_json(generation));
    }
    result["prompt_tokens"] = first.prompt_tokens;
    if (first.dropped_tokens > 0) result["dropped_tokens"] = first.dropped_tokens;
    if (first.cached_tokens > 0) result["cached_tokens"] = first.cached_tokens;
    result["prompt_seconds"] = first.prompt_seconds;
    result["generation_seconds"] = generations.back().generation_seconds;
    result["seed"] = generation_.options.sampling.seed;
    return json_line(result) + "\n";
  }

  Json generation_json(const infer::Generation& generation) const {
    Json result = {{"text", generation.text},
                   {"ids", generation.ids},
                   {"finish", infer::name_of(generation.finish)},
                   {"tokens", generation.ids.size()}};
    if (generation_.options.beams > 1) result["score"] = generation.score;
    if (generation_.options.speculative_tokens != 0 && generation_.options.beams == 1) {
      const int64_t speculative = generation.speculative_tokens,
                    accepted = generation.accepted_tokens;
      result["speculative_tokens"] = speculative;
      result["accepted_tokens"] = accepted;
      if (speculative > 0)
        result["acceptance_rate"] =
            static_cast<double>(accepted) / static_cast<double>(speculative);
    }
    if (generation_.options.logprobs < 0) return result;
    result["logprobs"] = Json::array();
    for (const infer::TokenLogprob& token : generation.logprobs) {
      Json one = {{"logprob", token.logprob}, {"top", Json::array()}};
      for (const auto& [id, logprob] : token.top) one["top"].push_back({id, logprob});
      result["logprobs"].push_back(std::move(one));
    }
    return result;
  }

  void report(const std::vector<infer::Generation>& generations) const {
    const infer::Generation& first = generations.front();
    int64_t generated = 0, speculative = 0, accepted = 0;
    for (const infer::Generation& generation : generations) {
      generated += std::ssize(generation.ids);
      speculative += generation.speculative_tokens, accepted += generation.accepted_tokens;
    }
    const int64_t read = first.prompt_tokens - first.dropped_tokens - first.cached_tokens;
    std::string unread;
    if (first.dropped_tokens > 0) unread = fmt::format(" ({} dropped)", first.dropped_tokens);
    if (first.cached_tokens > 0) unread = fmt::format(" ({} cached)", first.cached_tokens);
    note(dim(fmt::format("prompt: {} tokens{}, {} tokens/s; generation: {} tokens, {} tokens/s{}",
                         first.prompt_tokens, unread, amount(rate(read, first.prompt_seconds)),
                         generated, amount(rate(generated, generations.back().generation_seconds)),
                         speculation_line(*table_, speculative, accepted))) +
         "\n");
  }

  std::string model_, positional_prompt_, prompt_, file_, cache_file_, mmproj_;
  std::vector<std::string> adapters_, muted_;
  std::vector<int64_t> ids_;
  int precision_ = 0, cache_ = 0;
  PromptImages images_;
  GenerationOptions generation_;
  PromptsFile prompts_;
  OptionTable* table_ = nullptr;
  bool echo_ = false, parse_special_ = false;
  int64_t alternatives_ = 0, at_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_generate() { return std::make_unique<GenerateCommand>(); }

}  // namespace fovea::cli
