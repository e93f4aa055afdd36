#include "fovea/generate.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "command.h"
#include "files.h"
#include "progress.h"
#include "signals.h"
#include "terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPromptBytes = 64 << 20;  // far beyond any context, yet no danger to memory

// Nobody types at a pipe, a file or a socket: their text is the prompt. /dev/null and the like hold
// none.
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
      : Command("generate MODEL [-p TEXT | -f FILE | < FILE] [OPTIONS]",
                "Lets a model write on from a prompt. Only the continuation goes to standard "
                "output; one "
                "newline at the end of a file or of piped text is not part of the prompt.") {}

  void declare(OptionTable& table) override {
    table.add(place("MODEL", {"-m", "--model", "--model-name-or-path"}, "model directory", model_));
    table.add(text("--prompt", {"-p"}, "text to go on from", prompt_));
    table.add(text("--file", {"-f", "-i", "--input"}, "file with the text to go on from", file_));
    table.add(flag("--echo", {}, "print the prompt too", echo_));
    table.add(integer("--predict", {"-n", "--n-predict", "--max-tokens", "--max-new-tokens"},
                      "tokens to write; -1 = until the model or --stop ends it",
                      options_.max_tokens, -1, kMost));
    declare_sampling(table);
    table.add(
        list("--stop", {}, "end before this text; may be given several times", options_.stop));
    table.add(flag("--ignore-eos", {}, "go on past the end-of-text token", options_.ignore_end));
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (table.given("--prompt") && table.given("--file")) {
      throw UsageError("--file: given beside --prompt; expected one of them");
    }
    for (const std::string& stop : options_.stop) {
      if (stop.empty()) throw UsageError("--stop: \"\" is empty; expected the text to end before");
    }
    read_prompt(table);
    if (greedy_) options_.sampling.temperature = 0;
    options_.sampling.seed = seed_ < 0 ? std::random_device{}() : static_cast<uint64_t>(seed_);
    const Model model = open_model(model_);
    warn_unknown(model);
    return write(model);
  }

 private:
  static constexpr int64_t kMost = 1'000'000'000;

  void declare_sampling(OptionTable& table) {
    Sampling& s = options_.sampling;
    table.add(number("--temperature", {"--temp"},
                     "higher is bolder; 0 = always the likeliest token", s.temperature, 0, 100));
    table.add(
        integer("--top-k", {}, "choose among the k likeliest tokens; 0 = all", s.top_k, 0, kMost));
    table.add(number("--top-p", {},
                     "choose among the likeliest tokens with this much probability; 1 = all",
                     s.top_p, 1e-6, 1));
    table.add(number("--min-p", {},
                     "none below this share of the likeliest token's probability; 0 = all", s.min_p,
                     0, 1));
    table.add(number("--repetition-penalty", {"--repeat-penalty"},
                     "above 1: seen tokens get less likely", s.repetition_penalty, 0.01, 100));
    table.add(flag("--greedy", {}, "the same as --temperature 0", greedy_));
    table.add(integer("--seed", {"-s"}, "the same seed writes the same text; -1 = random", seed_,
                      -1, std::numeric_limits<int64_t>::max()));
  }

  void read_prompt(const OptionTable& table) {
    if (table.given("--prompt")) return;
    if (!table.given("--file")) {
      if (!input_is_piped()) return;
      file_ = "-";
    }
    prompt_ = read_text(file_, kPromptBytes);
    if (!prompt_.empty() && prompt_.back() == '\n') prompt_.pop_back();
  }

  void warn_unknown(const Model& model) const {
    if (!model.has_tokenizer()) return;
    const std::vector<std::string> unknown = model.tokenizer().unknown(prompt_);
    if (unknown.empty()) return;
    std::string named;
    constexpr size_t kNamed = 20;  // enough to see what kind of text it is
    for (size_t i = 0; i < std::min(unknown.size(), kNamed); ++i)
      named += " \"" + unknown[i] + "\"";
    note(fmt::format("note: the model does not know {} of the prompt's characters:{}{}\n",
                     unknown.size(), printable(named), unknown.size() > kNamed ? " ..." : ""));
  }

  int write(const Model& model) {
    catch_signals();
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
    const Generation result = generate(model, prompt_, options_, [&](std::string_view piece) {
      put(piece);
      return !closed && !asked_to_stop();
    })[0];
    if (json) print(as_json(result));
    if (last != "\n") put("\n");
    report(result);
    return asked_to_stop() ? stop_code() : 0;
  }

  std::string as_json(const Generation& result) const {
    const Json json_result = {{"prompt", prompt_},
                              {"text", result.text},
                              {"ids", result.ids},
                              {"finish", result.finish},
                              {"prompt_tokens", result.prompt_tokens},
                              {"tokens", result.ids.size()},
                              {"prompt_seconds", result.prompt_seconds},
                              {"generation_seconds", result.generation_seconds},
                              {"seed", options_.sampling.seed}};
    return json_result.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  void report(const Generation& result) const {
    const auto written = static_cast<int64_t>(result.ids.size());
    note(dim(fmt::format("prompt: {} tokens, {} tokens/s; generation: {} tokens, {} tokens/s",
                         result.prompt_tokens,
                         amount(rate(result.prompt_tokens, result.prompt_seconds)), written,
                         amount(rate(written, result.generation_seconds)))) +
         "\n");
  }

  std::string model_, prompt_, file_;
  GenerateOptions options_;
  int64_t seed_ = -1;
  bool echo_ = false, greedy_ = false;
};

}  // namespace

std::unique_ptr<Command> make_generate() { return std::make_unique<GenerateCommand>(); }

}  // namespace fovea::cli
