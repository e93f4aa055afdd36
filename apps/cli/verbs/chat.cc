#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/command.h"
#include "cli/reports/answer_stream.h"
#include "cli/reports/chat_commands.h"
#include "fovea/core/error.h"
#include "fovea/infer/engine.h"
#include "options/common_options.h"
#include "options/generation_options.h"
#include "options/open_model.h"
#include "terminal/held_keys.h"
#include "terminal/line_editor.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"
#include "terminal/word_wrap.h"

namespace fovea::cli {
namespace {

class ChatCommand : public Command {
 public:
  ChatCommand()
      : Command("chat MODEL [OPTIONS]",
                "Chats with a model trained for conversations. Only the answers are written to "
                "standard output. /? in the conversation lists its commands.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_, "model directory or .gguf file"));
    table.add(text("--system", {"--system-prompt"},
                   "system message at the start of the conversation", system_));
    table.add(as("FILE", text("--chat-template", {"--chat-template-file"},
                              "chat template to use instead of the model's", template_)));
    table.add(flag("--verbose", {}, "print the numbers of tokens and the speed of each answer",
                   verbose_));
    table.add(flag("--no-history", {}, "do not keep the typed lines for later sessions", forgets_));
    table.add(choice("--dtype", {"--precision"}, "precision of the weights; automatic = as stored",
                     precision_, kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(adapter_option(adapters_));
    table.add(mmproj_option(mmproj_));
    generation_.options.max_tokens = -1;
    generation_.declare(table, {"generations", "beams", "length_penalty", "logprobs"});
    table.show_only({"MODEL", "--system", "--chat-template", "--verbose", "--dtype",
                     "--cache-dtype", "--predict", "--stop", "--temperature", "--top-k", "--top-p",
                     "--greedy", "--seed", "--draft", "--speculative-tokens"});
  }

  void apply(OptionTable& table) override {
    table_ = &table;
    Command::apply(table);
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const model::WeightPrecision precision = weight_precision(precision_);
    const model::Model model =
        open_model(model_, precision, cache_type(cache_), adapters_of(adapters_), mmproj_);
    generation_.settle(model, precision, *table_);
    if (!table.given("--predict")) generation_.options.max_tokens = -1;
    ChatState chat{Conversation(model, format_of(model), system_), generation_, *table_, verbose_};
    infer::Engine engine(model, {.most_sequences = 1, .draft = generation_.draft});
    catch_signals("");
    editor_.emplace(forgets_ ? "" : "chat_history");
    if (editor_->on_terminal()) greet(model);
    while (!stop_requested() && turn(chat, model, engine)) {
    }
    if (json) print(chat.conversation.as_file());
    return stop_requested() ? stop_code() : 0;
  }

 private:
  text::ChatFormat format_of(const model::Model& model) const {
    auto format = text::chat_format(model_, template_, model.tokenizer());
    if (format) return *format;
    throw Error(ErrorKind::Unsupported,
                model_ +
                    ": the model has no chat template; expected a chat model, or --chat-template "
                    "FILE (fovea generate continues any text)");
  }

  void greet(const model::Model& model) const {
    const auto parameters = static_cast<double>(model.parameters());
    note(dim(fmt::format("{}: {} parameters, context of {} tokens; /? lists the commands, Ctrl-D "
                         "exits",
                         printable(model_), amount(parameters), model.spec().context)) +
         "\n");
  }

  // Processes one message or command. Returns false at the end of the conversation.
  bool turn(ChatState& chat, const model::Model& model, infer::Engine& engine) {
    const std::optional<std::string> typed = message();
    if (!typed) return editor_->interrupted() && !stop_requested();
    if (typed->empty()) return true;
    try {
      if (typed->front() != '/') {
        chat.conversation.say("user", *typed);
      } else {
        const AfterCommand next = run_command(*typed, chat);
        if (next != AfterCommand::answer) return next != AfterCommand::leave;
      }
      answer(chat, model, engine);
    } catch (const Error& error) {
      if (typed->front() != '/') chat.conversation.take_back(true);
      if (!editor_->on_terminal()) throw;
      note(fmt::format("fovea: {}\n", printable(message_of(error, *table_))));
    }
    return true;
  }

  // Reads one message, which may span several lines.
  std::optional<std::string> message() {
    std::optional<std::string> line = editor_->read("> ");
    if (!line) return line;
    constexpr std::string_view kBlock = "\"\"\"";
    std::string text;
    if (line->starts_with(kBlock)) {
      line->erase(0, kBlock.size());
      while (line && !line->ends_with(kBlock)) {
        text += *line + "\n";
        line = editor_->read("... ");
      }
      if (!line) return editor_->interrupted() ? line : text;
      return text + line->substr(0, line->size() - kBlock.size());
    }
    while (line && line->ends_with('\\')) {
      text += line->substr(0, line->size() - 1) + "\n";
      line = editor_->read("... ");
    }
    if (!line && editor_->interrupted()) return line;
    return text + line.value_or("");
  }

  void answer(ChatState& chat, const model::Model& model, infer::Engine& engine) {
    const Conversation::Prompt prompt = chat.conversation.prompt();
    if (prompt.dropped > 0) {
      note(dim(fmt::format("the context is full: the oldest {} messages are dropped",
                           prompt.dropped)) +
           "\n");
    }
    infer::GenerateOptions options = generation_.options;
    options.max_tokens =
        options.max_tokens < 0 ? prompt.room : std::min(options.max_tokens, prompt.room);
    options.constrain = generation_.grammar.constraint(model, options.max_tokens);
    const auto stream = std::make_shared<AnswerStream>();
    const uint64_t request = engine.submit(
        prompt.tokens, options, [stream](const infer::Event& e) { return stream->receive(e); });
    const infer::Generation answer = shown(*stream);
    engine.cancel(request);
    chat.conversation.say("assistant", answer.text);
    chat.statistics = statistics_of(answer);
    if (answer.finish == infer::FinishReason::cancelled) note(dim("interrupted") + "\n");
    if (answer.finish == infer::FinishReason::length)
      note(dim(options.max_tokens == prompt.room ? "cut off: the context is full"
                                                 : "cut off at the length limit") +
           "\n");
    if (chat.verbose) note(dim(chat.statistics) + "\n");
  }

  // Prints an answer as it arrives; on a terminal, between blank lines.
  infer::Generation shown(AnswerStream& stream) const {
    const bool terminal = is_terminal(Channel::output), apart = editor_->on_terminal() && !json;
    std::optional<HeldKeys> keys;
    if (editor_->on_terminal()) keys.emplace();
    constexpr int kNoEdge = 1 << 30;  // words cannot be moved there
    WordWrap wrap(moves_cursor() ? terminal_width() : kNoEdge);
    if (apart) note("\n");
    const infer::Generation answer = stream.follow(
        [&](const std::string& piece) {
          if (!json) print(terminal ? wrap(printable(piece)) : piece);
        },
        [] { return take_interrupt() || stop_requested(); });
    if (!json && !(terminal && wrap.at_line_start())) print("\n");
    if (apart) note("\n");
    return answer;
  }

  std::string statistics_of(const infer::Generation& answer) const {
    const auto rate = [](int64_t tokens, double seconds) {
      return amount(seconds > 0 ? static_cast<double>(tokens) / seconds : 0);
    };
    const int64_t read = answer.prompt_tokens - answer.cached_tokens;
    return fmt::format(
        "prompt: {} tokens ({} cached), {} tokens/s; answer: {} tokens, {} "
        "tokens/s{}",
        answer.prompt_tokens, answer.cached_tokens, rate(read, answer.prompt_seconds),
        answer.ids.size(), rate(std::ssize(answer.ids), answer.generation_seconds),
        speculation_line(*table_, answer.speculative_tokens, answer.accepted_tokens));
  }

  std::string model_, system_, template_, mmproj_;
  std::vector<std::string> adapters_;
  int precision_ = 0, cache_ = 0;
  GenerationOptions generation_;
  OptionTable* table_ = nullptr;
  bool verbose_ = false, forgets_ = false;
  std::optional<LineEditor> editor_;
};

}  // namespace

std::unique_ptr<Command> make_chat() { return std::make_unique<ChatCommand>(); }

}  // namespace fovea::cli
