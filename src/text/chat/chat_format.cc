#include "base/error.h"
#include "chat/image_messages.h"
#include "chat/template_probe.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/chat.h"

namespace fovea::text {
namespace {

// Removes the path of the template file from an error, since clients of a server must not see it.
std::string without_path(std::string message, const std::string& path) {
  const size_t end = message.find(": line ");
  if (message.starts_with(path) && end != std::string::npos) {
    message.replace(0, end, "the chat template");
  }
  return excerpt(message, 400);
}

}  // namespace

std::optional<ChatFormat> chat_format(const std::string& folder, const std::string& template_file,
                                      const std::optional<Tokenizer>& tokenizer) {
  const bool of_file = !template_file.empty();
  std::optional<ModelChat> chat;
  try {
    chat = of_file ? ModelChat::open_file(template_file, tokenizer) : ModelChat::open(folder);
  } catch (const Error& error) {
    if (of_file || error.kind() != ErrorKind::Unsupported) throw;
    return std::nullopt;
  }
  ChatRequest with_tools;
  with_tools.tools = ChatValue::list({});
  const std::string source = chat->choose({}).source(),
                    source_with_tools = chat->choose(with_tools).source();
  const auto names = [](const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
  };
  const auto render = [chat = *chat,
                       path = of_file ? template_file : folder](const ChatRequest& request) {
    try {
      return chat.render(request).text;
    } catch (const Error& error) {
      throw Error(error.kind(), without_path(error.what(), path));
    }
  };
  const bool parts = knows_parts(source);
  const TemplateHabits habits = probe_template(render, parts);
  // Many templates write the name of any role, which the model then does not know.
  const bool developer = names(source, "developer") && habits.shows_developer;
  return ChatFormat{render,
                    developer,
                    names(source_with_tools, "tools"),
                    names(source, "documents"),
                    parts,
                    habits,
                    source == source_with_tools ? source : source + source_with_tools};
}

}  // namespace fovea::text
