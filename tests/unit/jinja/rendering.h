#pragma once

// Renders templates without the chat layer.

#include <ctime>
#include <string>

#include "fovea/chat.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace fovea::jinja {

// Returns the time at which the goldens were made: Friday, 26 July 2024, 9:05:07.
inline std::tm moment() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_wday = 5;
  time.tm_yday = 207;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 7;
  return time;
}

inline Body parsed(const std::string& source, const std::string& name = "t") {
  return Parser(lex(source, name), name).run();
}

// Renders a template. `variables` is a JSON object. Errors name the template "t".
inline ChatTemplate::Result render(const std::string& source, const std::string& variables = "{}",
                                   const RenderLimits& limits = {}) {
  const ChatTemplate::Program program{"t", source, parsed(source)};
  Runtime runtime("variables", {});
  const Value given = from_json(runtime, variables, "variables");
  const std::function<std::tm()> now = moment;
  return Interpreter(program, given.dict(), limits, now).run();
}

inline std::string text_of(const std::string& source, const std::string& variables = "{}") {
  return render(source, variables).text;
}

}  // namespace fovea::jinja
