#pragma once

// Renders templates without the chat layer.

#include <string>

#include "fovea/text/chat.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"
#include "support/template_goldens.h"

namespace fovea::text::jinja {

inline Body parsed(const std::string& source, const std::string& name = "t") {
  return Parser(lex(source, name), name).run();
}

// Renders a template. `variables` is a JSON object. Errors name the template "t".
inline ChatTemplate::Result render(const std::string& source, const std::string& variables = "{}",
                                   const RenderLimits& limits = {}) {
  const ChatTemplate::Program program{"t", source, parsed(source)};
  Runtime runtime("variables", {});
  const Value given = from_json(runtime, variables, "variables");
  const std::function<std::tm()> now = golden_time;
  return Interpreter(program, given.dict(), limits, now).run();
}

inline std::string text_of(const std::string& source, const std::string& variables = "{}") {
  return render(source, variables).text;
}

}  // namespace fovea::text::jinja
