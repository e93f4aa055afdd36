#pragma once

#include <string>
#include <string_view>

#include "serve/request/request.h"

namespace fovea::serve {

// The input of a custom tool of OpenAI's API is a text. The model knows such a tool as a function
// with one argument, "input".

// Returns the function in the form of chats, and adds its name to request.custom_tools. `tool` has
// the name and the description; `format` has a type, "text" or "grammar", and the syntax and the
// definition of a grammar; it may be null. `at` and `at_format` are their locations, for errors.
Json custom_function(const Json& tool, const Json& format, const std::string& at,
                     const std::string& at_format, ChatRequest& request);

// Turns custom tools, their calls in messages, and the choice of one into functions. Names and
// leaves out tools of other types. Throws ApiError.
void convert_custom_tools(ChatRequest& request);

// Returns the arguments of the function for an input.
std::string custom_arguments(std::string_view input);

// Reads an input from arguments {"input": "..."} while they are generated.
class CustomInput {
 public:
  std::string add(std::string_view arguments);  // returns what more of the input they have
  // Returns the rest. Arguments of another form are the input themselves.
  std::string finish();

 private:
  std::string held_;  // arguments that are not read yet
  bool inside_ = false, ended_ = false;
};
std::string custom_input(std::string_view arguments);

}  // namespace fovea::serve
