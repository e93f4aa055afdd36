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

// What one rendering may use. A template comes with a model and is not trusted: these bound its
// time to some tens of milliseconds and its memory to some hundred megabytes.
struct RenderLimits {
  size_t steps = 1'000'000;                // expressions, statements, items; 64 bytes copied
  size_t output_bytes = size_t{16} << 20;  // of the text, and of each string on the way to it
  size_t calls = 100;                      // macros within macros
};

// The program of a chat template: the Jinja that Hugging Face checkpoints carry, as Jinja2 renders
// it in the immutable sandbox of transformers (trim_blocks, lstrip_blocks, loop controls,
// {% generation %}). Immutable: safe to use from any thread. It cannot reach a file, the
// environment or the network.
class ChatTemplate {
 public:
  // `name` is the template's name in errors. BadFile, with line and column, for what is not Jinja;
  // Unsupported for Jinja that is not rendered here, such as include.
  static ChatTemplate parse(std::string_view source, std::string name);

  struct Span {
    size_t begin, end;  // bytes of the text: [begin, end)
  };
  struct Result {
    std::string text;
    // What stands in {% generation %} blocks, the part that a model is trained on. Nothing where
    // such a block lies in a macro, a filter or a set block: where its text ends up is not known.
    std::optional<std::vector<Span>> assistant;
  };

  // `variables` is the text of a JSON object: messages, tools and whatever else the template asks
  // for. InvalidArgument, with line and column, for what the template refuses (raise_exception),
  // for an operation that Jinja refuses, and for what exceeds the limits. `now` is the local time
  // for strftime_now; the clock's where absent.
  Result render(std::string_view variables, const RenderLimits& limits = {},
                const std::function<std::tm()>& now = {}) const;

  const std::string& source() const;

  struct Program;
  explicit ChatTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

 private:
  friend class ModelChat;
  std::shared_ptr<const Program> program_;
};

// One conversation. The parts are JSON texts, because templates see every key that a message has.
struct ChatRequest {
  std::string messages;   // an array of objects: [{"role": "user", "content": "..."}]
  std::string tools;      // an array of function schemas; empty = none
  std::string documents;  // an array of {"title", "text"}; empty = none
  std::string variables;  // an object of more variables, such as enable_thinking; may be empty
  bool add_generation_prompt = true;
  std::string template_name;  // for a model with several; empty = tool_use with tools, else default
};

// The same conversation, with the special tokens that people wrote in it marked as text: see
// Tokenizer::guarded(). What is rendered of it is to be encoded as SpecialTokens::guarded.
ChatRequest guarded(const ChatRequest& request, const Tokenizer& tokenizer);

// The chat templates of a model's directory: chat_template.jinja, additional_chat_templates/*.jinja
// and the chat_template of tokenizer_config.json, with its special tokens as variables (bos_token
// and so on). Immutable: safe to use from any thread.
class ModelChat {
 public:
  // Unsupported for a model without a template: there is no default one.
  static ModelChat open(const std::filesystem::path& folder);
  // The template of a file, with the special tokens of `tokenizer`. Throws BadFile if the file
  // cannot be read or is not a template.
  static ModelChat open_file(const std::string& path, const std::optional<Tokenizer>& tokenizer);

  ChatTemplate::Result render(const ChatRequest& request, const RenderLimits& limits = {},
                              const std::function<std::tm()>& now = {}) const;
  // The template that a request chooses.
  const ChatTemplate& choose(const ChatRequest& request) const;

 private:
  std::string folder_;
  std::map<std::string, ChatTemplate> templates_;
  std::string special_tokens_;  // a JSON object
};

// How a program shows conversations to a model.
struct ChatFormat {
  // The text of a conversation. Errors of the template name its line, not where its file is.
  std::function<std::string(const ChatRequest&)> render;
  bool knows_developer = false;  // the role, which is "system" elsewhere
  bool knows_tools = true, knows_documents = true;
};

// The format of `template_file` with the special tokens of `tokenizer`, or of the model in `folder`
// if that is empty; nothing if the model has no template. Throws as ModelChat::open_file and open.
std::optional<ChatFormat> chat_format(const std::string& folder, const std::string& template_file,
                                      const std::optional<Tokenizer>& tokenizer);

}  // namespace fovea
