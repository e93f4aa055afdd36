// The filters that make text.

#include <algorithm>
#include <array>

#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/format.h"
#include "jinja/function.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

using In = Interpreter;

// The subject as text, as Jinja's soft_str.
std::string subject(In& in, const Value& value) {
  std::string text = to_text(in, value);
  in.bytes(text.size());
  return text;
}

template <std::string (*convert)(std::string_view)>
Value converted(In& in, Arguments& arguments) {
  const Bound bound(in, "the filter", arguments, {"s"}, 1);
  return Value(convert(subject(in, bound[0])));
}

Value string(In& in, Arguments& arguments) {
  const Bound bound(in, "string", arguments, {"s"}, 1);
  if (bound[0].is(Kind::string)) return bound[0];
  return Value(to_text(in, bound[0]));
}

Value trim(In& in, Arguments& arguments) {
  const std::string text = subject(in, arguments.positional[0]);
  const Bound bound(in, "trim", arguments, {"value", "chars"}, 1);
  return Value(bound.is_none(1) ? strip(text) : strip(text, bound.text(1), Side::both));
}

// Not str.title: only what follows white space or an opening bracket starts a word.
std::string title_words(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size()) {
      const utf8::Character character = utf8::first(text.substr(end));
      if (character.code_point == '-' || is_space(character.code_point) ||
          std::u32string_view(U"({[<").find(character.code_point) != std::u32string_view::npos) {
        break;
      }
      end += character.bytes;
    }
    if (end > 0) {
      const size_t head = utf8::first(text).bytes;
      out += upper(text.substr(0, head)) + lower(text.substr(head, end - head));
    }
    if (end < text.size()) {
      const size_t bytes = utf8::first(text.substr(end)).bytes;
      out += text.substr(end, bytes);
      end += bytes;
    }
    text.remove_prefix(end);
  }
  return out;
}

Value replace(In& in, Arguments& arguments) {
  const Bound bound(in, "replace", arguments, {"s", "old", "new", "count"}, 3);
  const int64_t limit = bound.is_none(3) ? -1 : bound.integer(3);
  return Value(
      replaced(in, to_text(in, bound[0]), to_text(in, bound[1]), to_text(in, bound[2]), limit));
}

Value indent(In& in, Arguments& arguments) {
  const Bound bound(in, "indent", arguments, {"s", "width", "first", "blank"}, 1);
  const std::string text = bound.text(0) + "\n";
  const std::string by =
      bound.given(1) && bound[1].is(Kind::string) ? bound.text(1) : blanks(in, bound.integer(1, 4));
  const bool first = bound.truth(2, false), blank = bound.truth(3, false);
  const auto lines = split_lines(text, false);
  in.bytes(text.size() + by.size() * lines.size());
  std::string out = first ? by : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (blank || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return Value(std::move(out));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out.push_back(c);
    }
  }
  return out;
}

Value escape(In& in, Arguments& arguments) {
  const Bound bound(in, "escape", arguments, {"s"}, 1);
  if (bound[0].is(Kind::string) && bound[0].text().escaped) return bound[0];
  return Value(escaped(to_text(in, bound[0])), true);
}

Value safe(In& in, Arguments& arguments) {
  const Bound bound(in, "safe", arguments, {"value"}, 1);
  return Value(to_text(in, bound[0]), true);
}

Value format(In& in, Arguments& arguments) {
  if (!arguments.named.empty()) in.unsupported("the filter format with named arguments");
  const Value form(subject(in, arguments.positional[0]));
  if (arguments.positional[0].is(Kind::string) && arguments.positional[0].text().escaped) {
    in.unsupported("formatting an escaped text");
  }
  arguments.positional.erase(arguments.positional.begin());
  return format_percent(in, form, new_tuple(in, std::move(arguments.positional)));
}

// transformers' own tojson: json.dumps with its options, no HTML escapes.
Value tojson(In& in, Arguments& arguments) {
  const Bound bound(in, "tojson", arguments,
                    {"x", "ensure_ascii", "indent", "separators", "sort_keys"}, 1);
  JsonStyle style;
  style.ascii = bound.truth(1, false);
  style.sorted = bound.truth(4, false);
  if (!bound.is_none(2)) {
    style.indent = bound[2].is(Kind::string) ? bound.text(2) : blanks(in, bound.integer(2));
    style.item_separator = ",";
  }
  if (!bound.is_none(3)) {
    const Values separators = to_list(in, bound[3]);
    if (separators.size() != 2 || !separators[0].is(Kind::string) ||
        !separators[1].is(Kind::string)) {
      in.fail("separators of tojson; expected two strings");
    }
    style.item_separator = separators[0].bytes();
    style.key_separator = separators[1].bytes();
  }
  return Value(to_json(in, bound[0], style));
}

constexpr std::array<NamedOperation, 13> text_filters = {{
    {"upper", converted<jinja::upper>},
    {"lower", converted<jinja::lower>},
    {"capitalize", converted<jinja::capitalize>},
    {"title", converted<title_words>},
    {"string", string},
    {"trim", trim},
    {"replace", replace},
    {"indent", indent},
    {"escape", escape},
    {"e", escape},
    {"safe", safe},
    {"format", format},
    {"tojson", tojson},
}};

}  // namespace

Operation find_text_filter(std::string_view name) {
  const auto found = std::find_if(text_filters.begin(), text_filters.end(),
                                  [&](const NamedOperation& each) { return each.name == name; });
  return found == text_filters.end() ? nullptr : found->operation;
}

}  // namespace fovea::jinja
