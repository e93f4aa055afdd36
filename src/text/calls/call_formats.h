#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/calls.h"

namespace fovea::text {

// How the arguments of a call are written.
enum class ArgumentStyle {
  json,      // a JSON object
  tagged,    // each between tags with its name; texts are written as they are, other values as JSON
  keywords,  // name=value, separated by ", ", with literals of Python
  braces,    // {name:value,...} with texts between marks
};

// A section of calls is `begin`, calls with `separator` between them, and `end`; a call is `call`,
// the name of the function, `arguments`, the arguments and `call_end`. White space in these texts
// stands for any white space, also none, when a text is read; kDigits stands for a number, kId for
// an id of nine letters and digits, and before a value kIsText for "true" or "false" and kType for
// the name of its type.
struct CallFormat {
  static constexpr char kDigits = '\1', kId = '\2', kIsText = '\3', kType = '\4';

  const char* name;
  // The beginning of a section from which on the grammar applies. Without one, a section begins
  // with the text up to the first name, at the start of the content only.
  const char* trigger;
  const char *begin, *call, *arguments, *call_end, *separator, *end;
  ArgumentStyle style;
  // Of tagged arguments: before and after a name, and after a value. Of braces: around a text.
  const char *key = "", *value = "", *value_end = "";
  bool cdata = false;  // of tagged: texts with "<" are CDATA sections, other values are Python's
  bool many = true;    // a section may have several calls
  // Texts around the content of a message that are no part of it.
  std::vector<std::string> frames = {};
  // The format in which a model writes the calls that its template shows in this one; empty: this.
  const char* generated = "";

  std::string head() const { return std::string(begin) + call; }  // the text up to the first name
  // Whether values have the constants of Python.
  bool python() const { return cdata || style == ArgumentStyle::keywords; }
  // Whether a call is a JSON object with its name and its arguments.
  bool in_object() const { return std::string_view(call).find("name\": \"") != std::string::npos; }
};

const std::vector<CallFormat>& call_formats();

// Marks of reasoning that are known: pairs of begin and end.
struct ReasoningMarks {
  const char *begin, *end;
  bool needs_begin = false;  // a template has them if it has the first; else if it has the second
};
const std::vector<ReasoningMarks>& reasoning_marks();

}  // namespace fovea::text
