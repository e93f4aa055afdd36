#include "cli/reports/chat_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/nearest.h"
#include "fovea/core/error.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Run = AfterCommand (*)(const std::string& argument, ChatState& chat);

struct ChatCommandRow {
  std::vector<std::string> names;  // the first one is listed
  const char* arguments;
  const char* help;
  Run run;
};

namespace chat_actions {

AfterCommand say(const std::string& line) {
  note(printable(line) + "\n");
  return AfterCommand::read;
}

AfterCommand clear(const std::string&, ChatState& chat) {
  chat.conversation.clear();
  return say("new conversation");
}

AfterCommand again(const std::string&, ChatState& chat) {
  if (!chat.conversation.take_back(false)) return say("there is no question yet");
  ++chat.generation.options.sampling.seed;
  return AfterCommand::answer;
}

// Sets the system message; "off" removes it, and an empty text changes nothing.
AfterCommand set_system(const std::string& text, ChatState& chat) {
  if (!text.empty()) chat.conversation.set_system(text == "off" ? "" : text);
  const std::string& now = chat.conversation.system();
  return say(now.empty() ? "no system message" : "system message: " + now);
}

// "/set NAME VALUE"; also /set verbose, /set quiet, /set system TEXT and /set parameter NAME VALUE,
// as in ollama.
AfterCommand set(const std::string& argument, ChatState& chat) {
  const size_t space = std::min(argument.find(' '), argument.size());
  const std::string name = argument.substr(0, space);
  const std::string value = space < argument.size() ? argument.substr(space + 1) : "";
  if (name.empty()) {
    note(GenerationOptions::changeable(chat.table));
    return say(fmt::format("  {:<20} {}", "system", chat.conversation.system()));
  }
  if (name == "parameter") return set(value, chat);
  if (name == "system") return set_system(value, chat);
  if (name == "verbose" || name == "quiet") {
    chat.verbose = name == "verbose";
    return say(chat.verbose ? "statistics follow each answer" : "no statistics");
  }
  chat.generation.change(chat.table, name, value);
  return say(name + " is " + value);
}

AfterCommand statistics(const std::string&, ChatState& chat) {
  return say(chat.statistics.empty() ? "there is no answer yet" : chat.statistics);
}

AfterCommand save(const std::string& path, ChatState& chat) {
  if (path.empty()) return say("/save: expected the name of a file");
  write_file_atomically(path, chat.conversation.as_file());
  return say(fmt::format("{}: {} messages", path, chat.conversation.messages()));
}

AfterCommand load(const std::string& path, ChatState& chat) {
  if (path.empty()) return say("/load: expected the name of a file that /save wrote");
  chat.conversation.load(path);
  return say(fmt::format("{}: {} messages", path, chat.conversation.messages()));
}

AfterCommand attach(const std::string& path, ChatState& chat) {
  if (path.empty()) return say("/image: expected the name of a PNG, JPEG or WebP file");
  chat.conversation.attach(path);
  return say(path + ": an image for the next question");
}

AfterCommand help(const std::string&, ChatState&);

AfterCommand leave(const std::string&, ChatState&) { return AfterCommand::leave; }

}  // namespace chat_actions

const std::vector<ChatCommandRow>& chat_commands() {
  using namespace chat_actions;  // NOLINT(google-build-using-namespace): the rows name them all
  static const std::vector<ChatCommandRow> all = {
      {{"/clear", "/new", "/reset"}, "", "start a new conversation", clear},
      {{"/again", "/retry", "/regenerate"},
       "",
       "generate a new answer to the last question",
       again},
      {{"/image"}, "FILE", "ask the next question about an image; may be repeated", attach},
      {{"/system"}, "[TEXT]", "set the system message; off: remove it; alone: show it", set_system},
      {{"/set"},
       "[NAME VALUE]",
       "set an option, such as temperature 0.5; alone: list them; verbose or quiet: statistics "
       "after each answer",
       set},
      {{"/stats"}, "", "tokens and speed of the last answer", statistics},
      {{"/save"}, "FILE", "write the conversation to a file", save},
      {{"/load"}, "FILE", "continue a conversation that /save wrote", load},
      {{"/?", "/help"}, "", "list the commands", help},
      {{"/bye", "/exit", "/quit"}, "", "exit (also Ctrl-D)", leave}};
  return all;
}

AfterCommand chat_actions::help(const std::string&, ChatState&) {
  for (const ChatCommandRow& row : chat_commands()) {
    std::string also;
    for (size_t i = 1; i < row.names.size(); ++i)
      also += (also.empty() ? " (also " : ", ") + row.names[i];
    note(fmt::format("  {:<20} {}{}\n", row.names[0] + " " + row.arguments, row.help,
                     also.empty() ? "" : also + ")"));
  }
  note(
      "A line that ends with \\ continues on the next line; \"\"\" begins and ends a message of "
      "several lines.\nCtrl-C stops the current answer.\n");
  return AfterCommand::read;
}

}  // namespace

AfterCommand run_command(const std::string& typed, ChatState& chat) {
  const size_t space = std::min(typed.find(' '), typed.size());
  const std::string name = typed.substr(0, space);
  size_t begin = std::min(typed.find_first_not_of(' ', space), typed.size());
  const std::string argument = typed.substr(begin, typed.find_last_not_of(' ') + 1 - begin);
  std::vector<std::string> names;
  for (const ChatCommandRow& row : chat_commands())
    for (const std::string& each : row.names) {
      names.push_back(each);
      if (each != name) continue;
      try {
        return row.run(argument, chat);
      } catch (const UsageError& error) {
        return chat_actions::say(name + ": " + error.what());
      } catch (const Error& error) {
        return chat_actions::say(name + ": " + message_of(error, chat.table));
      }
    }
  return chat_actions::say(
      fmt::format("{}: unknown command{}; /? lists the commands", name, did_you_mean(name, names)));
}

}  // namespace fovea::cli
