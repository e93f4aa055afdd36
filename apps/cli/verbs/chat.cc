#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "cli/command.h"
#include "cli/reports/conversation.h"
#include "fovea/engine.h"
#include "fovea/error.h"
#include "options/common_options.h"
#include "options/generation_options.h"
#include "options/open_model.h"
#include "terminal/line_editor.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr const char* kHelp =
    "  /new            start a new conversation\n  /again          generate a new answer to the "
    "last question\n  /system [TEXT]  set the system message\n  /exit           exit (also "
    "Ctrl-D)\nA line that ends with \\ continues on the next line; \"\"\" begins and ends a "
    "message of several lines.\nCtrl-C stops the current answer.\n";

// Passes an answer from the engine's thread to the terminal's thread.
class AnswerStream {
 public:
  bool receive(const Event& event) {
    const std::lock_guard lock(mutex_);
    text_ += event.text;
    if (event.finished) answer_ = *event.finished;
    if (event.error) error_ = *event.error;
    done_ = done_ || event.finished || event.error;
    changed_.notify_one();
    return !stopped_;
  }

  // Passes the text to `take` as it arrives, until the answer is complete or stop() returns true.
  template <class Take, class Stop>
  Generation follow(Take&& take, Stop&& stop) {
    std::unique_lock lock(mutex_);
    std::string shown;
    while (true) {
      changed_.wait_for(lock, std::chrono::milliseconds(50),
                        [&] { return done_ || !text_.empty(); });
      const std::string piece = std::exchange(text_, {});
      shown += piece;
      const bool last = done_;
      lock.unlock();
      take(piece);
      const bool stopping = stop();
      lock.lock();
      if (last) break;
      if (!stopping) continue;
      stopped_ = true;
      answer_.text = shown;
      answer_.finish = FinishReason::cancelled;
      return answer_;
    }
    if (error_) throw *error_;
    return answer_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::optional<Error> error_;
  Generation answer_;
  bool done_ = false, stopped_ = false;
};

class ChatCommand : public Command {
 public:
  ChatCommand()
      : Command("chat MODEL [OPTIONS]",
                "Chats with a model trained for conversations. Only the answers are written to "
                "standard output. /help in the conversation lists its commands.") {}

  void declare(OptionTable& table) override {
    table.add(model_place(model_, "model directory or .gguf file"));
    table.add(text("--system", {"--system-prompt"},
                   "system message at the start of the conversation", system_));
    table.add(as("FILE", text("--chat-template", {"--chat-template-file"},
                              "chat template to use instead of the model's", template_)));
    table.add(choice("--dtype", {"--precision"}, "precision of the weights; automatic = as stored",
                     precision_, kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(adapter_option(adapters_));
    generation_.options.max_tokens = -1;
    generation_.declare(table, {"answers", "beams", "length_penalty", "logprobs"});
    table.show_only({"MODEL", "--system", "--chat-template", "--dtype", "--cache-dtype",
                     "--predict", "--stop", "--temperature", "--top-k", "--top-p", "--greedy",
                     "--seed", "--draft", "--guess"});
  }

  void apply(OptionTable& table) override {
    table_ = &table;
    Command::apply(table);
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    const WeightPrecision precision = weight_precision(precision_);
    const Model model =
        open_model(model_, precision, cache_precision(cache_), adapters_of(adapters_));
    generation_.settle(model, precision, *table_);
    if (!table.given("--predict")) generation_.options.max_tokens = -1;
    Conversation conversation(model, format_of(model), system_);
    Engine engine(model, {.most_sequences = 1, .draft = generation_.draft});
    catch_signals("");
    editor_.emplace();
    if (editor_->on_terminal()) note(dim("/help lists the commands; Ctrl-D exits") + "\n");
    while (!asked_to_stop() && turn(conversation, engine)) {
    }
    if (json) print("{\"messages\":" + conversation.as_json() + "}\n");
    return asked_to_stop() ? stop_code() : 0;
  }

 private:
  ChatFormat format_of(const Model& model) const {
    auto format = chat_format(model_, template_, model.tokenizer());
    if (format) return *format;
    throw Error(ErrorKind::Unsupported,
                model_ +
                    ": the model has no chat template; expected a chat model, or --chat-template "
                    "FILE (fovea generate continues any text)");
  }

  // Processes one message or command. Returns false at the end of the conversation.
  bool turn(Conversation& conversation, Engine& engine) {
    const std::optional<std::string> typed = message();
    if (!typed) return editor_->interrupted() && !asked_to_stop();
    if (typed->empty()) return true;
    if (*typed == "/exit") return false;
    if (typed->front() != '/') {
      conversation.say("user", *typed);
    } else if (!command(*typed, conversation)) {
      return true;
    }
    try {
      answer(conversation, engine);
    } catch (const Error& error) {
      note(fmt::format("fovea: {}\n", printable(error.what())));
      conversation.take_back(true);
      if (!editor_->on_terminal()) throw;
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

  // Runs a slash command. Returns true if it requires an answer.
  bool command(const std::string& typed, Conversation& conversation) {
    const size_t space = typed.find(' ');
    const std::string name = typed.substr(0, space);
    if (name == "/again") {
      if (conversation.take_back(false)) {
        ++generation_.options.sampling.seed;
        return true;
      }
      note("there is no question yet\n");
    } else if (name == "/new") {
      conversation.clear();
    } else if (name == "/system") {
      conversation.set_system(space == std::string::npos ? "" : typed.substr(space + 1));
    } else if (name == "/help") {
      note(kHelp);
    } else {
      note(fmt::format("{}: unknown command; /help lists the commands\n", printable(name)));
    }
    return false;
  }

  void answer(Conversation& conversation, Engine& engine) {
    const Conversation::Prompt prompt = conversation.prompt();
    if (prompt.dropped > 0) {
      note(dim(fmt::format("the context is full: the oldest {} messages are dropped",
                           prompt.dropped)) +
           "\n");
    }
    GenerateOptions options = generation_.options;
    options.max_tokens =
        options.max_tokens < 0 ? prompt.room : std::min(options.max_tokens, prompt.room);
    const auto stream = std::make_shared<AnswerStream>();
    const uint64_t request =
        engine.submit(prompt.ids, options, [stream](const Event& e) { return stream->receive(e); });
    const bool shows_controls = !is_terminal(Channel::output);
    const Generation answer = stream->follow(
        [&](const std::string& piece) {
          if (!json) print(shows_controls ? piece : printable(piece));
        },
        [] { return take_interrupt() || asked_to_stop(); });
    engine.cancel(request);
    if (!json) print("\n");
    conversation.say("assistant", answer.text);
    report(answer);
  }

  static void report(const Generation& answer) {
    if (answer.finish == FinishReason::cancelled) return note(dim("interrupted") + "\n");
    const auto rate = [](int64_t tokens, double seconds) {
      return amount(seconds > 0 ? static_cast<double>(tokens) / seconds : 0);
    };
    const int64_t read = answer.prompt_tokens - answer.cached_tokens;
    note(dim(fmt::format(
             "prompt: {} tokens ({} cached), {} tokens/s; answer: {} tokens, {} tokens/s{}{}",
             answer.prompt_tokens, answer.cached_tokens, rate(read, answer.prompt_seconds),
             answer.ids.size(), rate(std::ssize(answer.ids), answer.generation_seconds),
             guesses_line(answer.guessed_tokens, answer.accepted_tokens),
             answer.finish == FinishReason::length ? "; cut off at the length limit" : "")) +
         "\n");
  }

  std::string model_, system_, template_;
  std::vector<std::string> adapters_;
  int precision_ = 0, cache_ = 0;
  GenerationOptions generation_;
  OptionTable* table_ = nullptr;
  std::optional<LineEditor> editor_;
};

}  // namespace

std::unique_ptr<Command> make_chat() { return std::make_unique<ChatCommand>(); }

}  // namespace fovea::cli
