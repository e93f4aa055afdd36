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

#include "fovea/core/error.h"
#include "fovea/text/chat_value.h"
#include "fovea/text/tokenizer.h"

namespace fovea::text {

// Limits of one rendering. Templates come with models and are not trusted: these values limit the
// time to tens of milliseconds and the memory to a few hundred megabytes.
struct RenderLimits {
  size_t steps = 1'000'000;  // expressions, statements, items, and blocks of 64 bytes copied
  size_t output_bytes = size_t{16} << 20;  // of the text, and of each intermediate string
  size_t value_bytes = size_t{16} << 20;   // of all values at one time, besides the variables
  size_t calls = 100;                      // depth of nested macro calls
};

// A compiled chat template in the Jinja dialect of Hugging Face checkpoints. It is rendered as in
// the immutable sandbox of transformers and Jinja2 (trim_blocks, lstrip_blocks, loop controls,
// {% generation %}). It cannot access files, the environment or the network. Immutable: safe to use
// from any thread.
class ChatTemplate {
 public:
  // Compiles a template; `name` identifies it in errors. Throws BadFile, with line and column, if
  // `source` is not valid Jinja. Throws Unsupported for Jinja features that are not implemented,
  // such as include.
  static ChatTemplate parse(std::string_view source, std::string name);

  struct Span {
    size_t begin, end;  // byte range [begin, end) of the text
  };
  struct Result {
    std::string text;
    // The ranges of the {% generation %} blocks, whose text a model is trained to generate. Unset
    // if such a block is inside a macro, a filter or a set block, since its position is then
    // unknown.
    std::optional<std::vector<Span>> assistant;
  };

  // Renders the template. `variables` is a JSON object with messages, tools and any other variables
  // of the template. `now` returns the local time for strftime_now; unset: the system clock. Throws
  // InvalidArgument, with line and column, if the template calls raise_exception, if an operation
  // is invalid in Jinja, or if a limit is exceeded, and BadFile if `variables` is not valid JSON.
  Result render(std::string_view variables, const RenderLimits& limits = {},
                const std::function<std::tm()>& now = {}) const;

  // Returns the template's text; valid as long as a copy of the template exists.
  const std::string& source() const;

  struct Program;
  explicit ChatTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

 private:
  friend class ModelChat;
  std::shared_ptr<const Program> program_;
};

// One conversation.
struct ChatRequest {
  ChatValue messages;   // a list of objects; see chat_message()
  ChatValue tools;      // a list of function schemas; null = none
  ChatValue documents;  // a list of objects with "title" and "text"; null = none
  ChatValue variables;  // an object of extra variables, such as enable_thinking; may be null
  bool add_generation_prompt = true;
  // The name of the template, if there are several; empty = tool_use if there are tools and the
  // model has this template, else default.
  std::string template_name;
};

// Returns the request with each special token in its strings marked as plain text; see
// Tokenizer::guarded(). Encode the rendered text with SpecialTokens::guarded.
ChatRequest guarded(const ChatRequest& request, const Tokenizer& tokenizer);

// The chat templates of a model directory (chat_template.jinja, additional_chat_templates/*.jinja
// and the chat_template of tokenizer_config.json) or of a .gguf file. The special tokens of
// tokenizer_config.json, such as bos_token, are variables of the templates. Immutable: safe to use
// from any thread.
class ModelChat {
 public:
  // Opens the templates of a model. Throws Unsupported if it has none, since there is no default
  // template, and the errors of ChatTemplate::parse().
  static ModelChat open(const std::filesystem::path& folder);
  // Opens the template in a file; bos_token and eos_token are those of `tokenizer`. Throws BadFile
  // if the file cannot be read, and the errors of ChatTemplate::parse().
  static ModelChat open_file(const std::string& path, const std::optional<Tokenizer>& tokenizer);
  // Like open_file(), with the template's text and its name in errors.
  static ModelChat of_source(const std::string& source, const std::string& name,
                             const std::optional<Tokenizer>& tokenizer);
  // Returns whether open() finds a template.
  static bool has_template(const std::filesystem::path& folder);

  // Renders the template that `request` selects. Throws the errors of choose() and
  // ChatTemplate::render(), and InvalidArgument if a field of `request` is another kind of value.
  ChatTemplate::Result render(const ChatRequest& request, const RenderLimits& limits = {},
                              const std::function<std::tm()>& now = {}) const;
  // Returns the template that `request` selects; valid as long as this object exists. Throws
  // InvalidArgument if it does not exist.
  const ChatTemplate& choose(const ChatRequest& request) const;

 private:
  std::string folder_;
  std::map<std::string, ChatTemplate> templates_;
  ChatValue special_tokens_;  // an object
};

// What a chat template expects, found by rendering small conversations.
struct TemplateHabits {
  bool shows_system = true, shows_developer = true;  // messages of these roles
  bool text_arguments = false;  // arguments of calls are texts with JSON, not objects
  // Which ids of calls it takes: nine letters and digits, and others.
  bool short_ids = true, long_ids = true;
  // The contents beside which it shows the calls of a message: null, "", and a text.
  bool calls_without_content = true, calls_with_empty = true, calls_with_text = true;
};

// Converts a conversation to the text format on which the model was trained.
struct ChatFormat {
  // Returns the text of a conversation. Throws the errors of ModelChat::render(), which name a line
  // of the template, but not its path. Safe to call from any thread.
  std::function<std::string(const ChatRequest&)> render;
  // Whether the template uses the role "developer" (if not, use "system"), tools and documents.
  bool knows_developer = false;
  bool knows_tools = true, knows_documents = true;
  // Whether contents may be lists of parts {"type": "text", "text": ...} and {"type": "image"}.
  bool knows_parts = false;
  TemplateHabits habits = {};
  std::string source = {};  // the text of the templates
};

// Returns the text of a conversation with images: contents are texts or lists of these parts. If
// the template does not know parts, `mark` and a line break take the place of each image. Special
// tokens in texts are guarded(). Throws the errors of ChatFormat::render and of guarded().
std::string render_with_images(const ChatFormat& format, const ChatRequest& request,
                               const Tokenizer& tokenizer, const std::string& mark);

// Returns the format of `template_file`, with the special tokens of `tokenizer`. If `template_file`
// is empty, returns the format of the model in `folder`, or nothing if the model has no template
// or one with an unsupported feature. Throws the other errors of ModelChat::open_file() and open().
std::optional<ChatFormat> chat_format(const std::string& folder, const std::string& template_file,
                                      const std::optional<Tokenizer>& tokenizer);

}  // namespace fovea::text
