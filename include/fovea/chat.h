#pragma once

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/error.h"
#include "fovea/tokenizer.h"

namespace fovea {

// Limits of one rendering. Templates come with models and are not trusted: these values limit the
// time to tens of milliseconds and the memory to a few hundred megabytes.
struct RenderLimits {
  size_t steps = 1'000'000;  // one per expression, statement, item and 64 bytes copied
  size_t output_bytes = size_t{16} << 20;  // the text, and each intermediate string
  size_t calls = 100;                      // nested macro calls
};

// A compiled chat template: the Jinja dialect of Hugging Face checkpoints, rendered as by Jinja2 in
// the immutable sandbox of transformers (trim_blocks, lstrip_blocks, loop controls, {% generation
// %}). It cannot access files, the environment or the network. Immutable: safe to use from any
// thread.
class ChatTemplate {
 public:
  // `name` identifies the template in errors. Throws BadFile, with line and column, if `source` is
  // not valid Jinja; throws Unsupported for Jinja features that are not implemented, such as
  // include.
  static ChatTemplate parse(std::string_view source, std::string name);

  struct Span {
    size_t begin, end;  // byte range [begin, end) of the text
  };
  struct Result {
    std::string text;
    // The text of the {% generation %} blocks, on which a model is trained. Unset if such a block
    // is inside a macro, a filter or a set block, since its position in the output is then unknown.
    std::optional<std::vector<Span>> assistant;
  };

  // `variables` is a JSON object with messages, tools and any other variables of the template.
  // `now` returns the local time for strftime_now; unset: the system clock. Throws InvalidArgument,
  // with line and column, if the template calls raise_exception, if an operation is invalid in
  // Jinja, or if a limit is exceeded.
  Result render(std::string_view variables, const RenderLimits& limits = {},
                const std::function<std::tm()>& now = {}) const;

  const std::string& source() const;

  struct Program;
  explicit ChatTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

 private:
  friend class ModelChat;
  std::shared_ptr<const Program> program_;
};

// One conversation. The fields are JSON texts, since templates may read any key of a message.
struct ChatRequest {
  std::string messages;   // an array of objects: [{"role": "user", "content": "..."}]
  std::string tools;      // an array of function schemas; empty = none
  std::string documents;  // an array of {"title", "text"}; empty = none
  std::string variables;  // an object of extra variables, such as enable_thinking; may be empty
  bool add_generation_prompt = true;
  // which of several templates; empty = tool_use if there are tools, else default
  std::string template_name;
};

// Returns the conversation with every special token that users typed marked as plain text, see
// Tokenizer::guarded(). Encode the rendered text with SpecialTokens::guarded.
ChatRequest guarded(const ChatRequest& request, const Tokenizer& tokenizer);

// The chat templates of a model directory: chat_template.jinja, additional_chat_templates/*.jinja
// and the chat_template of tokenizer_config.json, whose special tokens (bos_token and so on) are
// passed as variables. Immutable: safe to use from any thread.
class ModelChat {
 public:
  // Throws Unsupported if the model has no chat template; there is no default template.
  static ModelChat open(const std::filesystem::path& folder);
  // Opens the template in a file, with the special tokens of `tokenizer`. Throws BadFile if the
  // file cannot be read or is not a template.
  static ModelChat open_file(const std::string& path, const std::optional<Tokenizer>& tokenizer);

  ChatTemplate::Result render(const ChatRequest& request, const RenderLimits& limits = {},
                              const std::function<std::tm()>& now = {}) const;
  // Returns the template that `request` selects.
  const ChatTemplate& choose(const ChatRequest& request) const;

 private:
  std::string folder_;
  std::map<std::string, ChatTemplate> templates_;
  std::string special_tokens_;  // a JSON object
};

// Converts a conversation to the text format that the model was trained on.
struct ChatFormat {
  // Returns the text of a conversation. Errors name a line of the template, but not its path.
  std::function<std::string(const ChatRequest&)> render;
  bool knows_developer = false;  // accepts the role "developer"; if not, use "system"
  bool knows_tools = true, knows_documents = true;
};

// Returns the format of `template_file`, with the special tokens of `tokenizer`, or, if
// `template_file` is empty, the format of the model in `folder`; nothing if the model has no
// template. Throws the errors of ModelChat::open_file() and open().
std::optional<ChatFormat> chat_format(const std::string& folder, const std::string& template_file,
                                      const std::optional<Tokenizer>& tokenizer);

}  // namespace fovea
