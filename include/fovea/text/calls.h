#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/chat.h"
#include "fovea/text/json_grammar.h"

namespace fovea::text {

// How the models of one kind write the calls of functions: one row of a table.
struct CallFormat;

// How a model writes its reasoning and its calls beside the content of a message.
struct MessageFormat {
  const CallFormat* calls = nullptr;  // null: unknown; calls are then found, but not enforced
  // The marks around reasoning; empty = the model writes none.
  std::string reasoning_begin, reasoning_end;
};
// Returns the format of a chat template, found by rendering a message with a call and by reading
// the source of the template.
MessageFormat message_format(const ChatFormat& chat);
// The names of the formats of calls, separated by ", ", and the format with a name. Throws
// InvalidArgument if no format has the name.
std::string call_format_names();
const CallFormat* find_call_format(const std::string& name);
const char* name_of(const CallFormat& format);
// Returns a text for the system message that describes functions and the format of their calls, for
// a model whose template does not. `tools`: a line of JSON for each function.
std::string describe_tools(const std::string& tools, const CallFormat& format);
// Returns the ids of the special tokens that the marks of a format consist of, with those of calls
// or without. The text that is read must contain them: GenerateOptions::kept_special.
std::vector<int32_t> mark_ids(const MessageFormat& format, bool with_calls,
                              const Tokenizer& tokenizer);

// A function that a model may call.
struct CallableFunction {
  std::string name;
  std::string parameters;  // the JSON Schema of an object with the arguments; empty = any object
  bool strict = false;     // a schema that cannot be enforced is an error
};
// Returns the JSON Schema of a call of one of the functions, as an object with its name and its
// arguments.
std::string call_schema(const std::vector<CallableFunction>& functions);

// A part of a generated message. The text of a call's parts, concatenated, is the JSON of its
// arguments.
struct MessagePart {
  enum Kind : uint8_t { reasoning, content, call } kind = content;
  std::string text;
  size_t call_index = 0;  // counted from 0
  std::string name = {};  // of a call: the function
  bool begins = false;    // the first part of a call
};

// What a message may consist of.
struct MessageRules {
  MessageFormat format;
  std::vector<CallableFunction> functions;  // empty: no text is a call
  bool in_reasoning = false;                // the prompt ends within reasoning
  bool split_reasoning = true;              // false: reasoning and its marks are content
  // The calls are enforced by message_constraint(), so that their arguments can be passed on while
  // they are generated.
  bool enforced = false;
  std::string begun = {};  // the part of the message that the prompt has: the mark of a call
};

// Sets what the end of a prompt, rendered by a chat template, has of the message: `in_reasoning`
// and `begun`.
void read_prompt(std::string_view prompt, MessageRules& rules);

// Splits the text of a generated message into reasoning, content and calls, as soon as each
// part is certain. Text that begins like a call and turns out not to be one is content. Joined by
// kind, the parts do not depend on how the text is divided. For one thread at a time.
class MessageReader {
 public:
  explicit MessageReader(MessageRules rules);
  ~MessageReader();
  MessageReader(MessageReader&&) noexcept;
  MessageReader& operator=(MessageReader&&) noexcept;

  std::vector<MessagePart> add(std::string_view text);
  std::vector<MessagePart> finish();  // at the end of the text

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What message_constraint() enforces.
struct MessageLimits {
  bool calls_required = false;  // after the reasoning, the message consists of calls
  bool one_call = false;        // at most one call
  // The maximum number of tokens of reasoning, after which its closing mark is forced; -1 = no
  // limit.
  int64_t reasoning_tokens = -1;
  int64_t most_tokens = -1;  // as in json_constraint()
  // Returns the constraint of the content after the reasoning, of at most this many tokens; unset:
  // any content.
  std::function<Constraint(int64_t most_tokens)> content = {};
};
struct MessageConstraint {
  Constraint constrain;               // empty if there is nothing to enforce
  std::vector<std::string> warnings;  // about schemas that cannot be enforced
};

// Returns a constraint under which calls are valid: from the mark of a call on, only tokens are
// allowed that continue calls of the functions, in the format of the rules, with arguments
// that satisfy their schemas. Reasoning and other content are not restricted. `vocabulary` has the
// tokens of mark_ids(). Use it for one request only. Throws the errors of json_constraint(), which
// name the function.
MessageConstraint message_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                                     const Tokenizer& tokenizer, const MessageRules& rules,
                                     const MessageLimits& limits);

}  // namespace fovea::text
