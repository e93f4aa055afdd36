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

Value center(In& in, Arguments& arguments) {
  const Bound bound(in, "center", arguments, {"value", "width"}, 1);
  return Value(padded(in, to_text(in, bound[0]), bound.integer(1, 80), Side::both, " "));
}

Value indent(In& in, Arguments& arguments) {
  const Bound bound(in, "indent", arguments, {"s", "width", "first", "blank"}, 1);
  const std::string text = bound.text(0) + "\n";
  const std::string by = bound.given(1) && bound[1].is(Kind::string)
                             ? bound.text(1)
                             : padded(in, "", bound.integer(1, 4), Side::left, " ");
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

Value truncate(In& in, Arguments& arguments) {
  const Bound bound(in, "truncate", arguments, {"s", "length", "killwords", "end", "leeway"}, 1);
  const std::string end = bound.given(3) ? bound.text(3) : "...";
  const int64_t length = bound.integer(1, 255), leeway = bound.is_none(4) ? 5 : bound.integer(4);
  const auto end_length = static_cast<int64_t>(characters(end));
  if (length < end_length) in.fail("expected length >= {}, got {}", end_length, length);
  if (leeway < 0) in.fail("expected leeway >= 0, got {}", leeway);
  // Python asks for the length, which lists have too.
  if (!bound[0].is(Kind::string)) {
    const auto count = jinja::length(in, bound[0]);
    if (count && static_cast<int64_t>(*count) <= length + leeway) return bound[0];
  }
  const std::string& text = bound.text(0);
  if (length > static_cast<int64_t>(text.size()) ||
      static_cast<int64_t>(characters(text)) <= length + leeway) {
    return bound[0];
  }
  std::string_view kept =
      std::string_view(text).substr(0, byte_of(text, static_cast<size_t>(length - end_length)));
  if (!bound.truth(2, false)) kept = split_at(kept, " ", 1, true)[0];
  return Value(std::string(kept) + end);
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

Value forceescape(In& in, Arguments& arguments) {
  const Bound bound(in, "forceescape", arguments, {"value"}, 1);
  return Value(escaped(to_text(in, bound[0])), true);
}

Value safe(In& in, Arguments& arguments) {
  const Bound bound(in, "safe", arguments, {"value"}, 1);
  return Value(to_text(in, bound[0]), true);
}

Value format(In& in, Arguments& arguments) {
  const Value form(subject(in, arguments.positional[0]));
  if (arguments.positional[0].is(Kind::string) && arguments.positional[0].text().escaped) {
    in.unsupported("formatting an escaped text");
  }
  arguments.positional.erase(arguments.positional.begin());
  if (arguments.named.empty()) {
    return format_percent(in, form, new_tuple(in, std::move(arguments.positional)));
  }
  if (!arguments.positional.empty()) {
    in.fail("can't handle positional and keyword arguments at the same time");
  }
  const auto dict = std::make_shared<Dict>();
  for (auto& [name, value] : arguments.named) dict->set(in, Value(name), value);
  return format_percent(in, form, Value(std::shared_ptr<const Dict>(dict)));
}

Value wordcount(In& in, Arguments& arguments) {
  const Bound bound(in, "wordcount", arguments, {"s"}, 1);
  const std::string text = to_text(in, bound[0]);
  in.bytes(text.size());
  int64_t words = 0;
  bool inside = false;
  for (std::string_view rest = text; !rest.empty();) {
    const utf8::Character character = utf8::first(rest);
    const bool word = is_word(character.code_point);
    words += word && !inside ? 1 : 0;
    inside = word;
    rest.remove_prefix(character.bytes);
  }
  return Value(words);
}

// Python's urllib.parse.quote; in a query a space is "+" and a slash is quoted too.
std::string quoted_url(std::string_view text, bool query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos;
    if (plain || (c == '/' && !query)) {
      out.push_back(c);
    } else if (c == ' ' && query) {
      out.push_back('+');
    } else {
      out += fmt::format("%{:02X}", static_cast<uint8_t>(c));
    }
  }
  return out;
}

Value urlencode(In& in, Arguments& arguments) {
  const Bound bound(in, "urlencode", arguments, {"value"}, 1);
  const Value& value = bound[0];
  if (value.is(Kind::string) || !is_iterable(value)) {
    return Value(quoted_url(to_text(in, value), false));
  }
  const Value pairs = value.is(Kind::dict) ? Value(make_view(value.dict(), "items")) : value;
  std::string out;
  for (const Value& item : to_list(in, pairs)) {
    const Values pair = to_list(in, item);
    if (pair.size() != 2) in.fail("{} values to unpack; expected 2", pair.size());
    if (!out.empty()) out.push_back('&');
    out += quoted_url(to_text(in, pair[0]), true) + "=" + quoted_url(to_text(in, pair[1]), true);
    in.bytes(out.size());
  }
  return Value(std::move(out));
}

// The attributes of an XML element, a space before each. Escaped values are not escaped again.
Value xmlattr(In& in, Arguments& arguments) {
  const Bound bound(in, "xmlattr", arguments, {"d", "autospace"}, 1);
  if (!bound[0].is(Kind::dict)) in.fail("'{}' object has no items", type_name(bound[0]));
  const auto plain = [&](const Value& value) {
    return value.is(Kind::string) && value.text().escaped ? value.bytes()
                                                          : escaped(to_text(in, value));
  };
  std::string out;
  for (const auto& [key, value] : bound[0].dict()->entries()) {
    if (value.is(Kind::none) || value.is_undefined()) continue;
    if (!key.is(Kind::string) || key.bytes().find_first_of(" \t\n\v\f\r/>=") != std::string::npos)
      in.fail("invalid character in the name of an attribute: {}", repr(in, key));
    out += fmt::format(" {}=\"{}\"", plain(key), plain(value));
    in.bytes(out.size());
  }
  if (!bound.truth(1, true) && !out.empty()) out.erase(0, 1);
  return Value(std::move(out));
}

Value pprint(In& in, Arguments& arguments) {
  const Bound bound(in, "pprint", arguments, {"value"}, 1);
  return Value(pretty_printed(in, bound[0]));
}

// transformers' own tojson: json.dumps with its options, no HTML escapes.
Value tojson(In& in, Arguments& arguments) {
  const Bound bound(in, "tojson", arguments,
                    {"x", "ensure_ascii", "indent", "separators", "sort_keys"}, 1);
  JsonStyle style;
  style.ascii = bound.truth(1, false);
  style.sorted = bound.truth(4, false);
  if (!bound.is_none(2)) {
    style.indent = bound[2].is(Kind::string)
                       ? bound.text(2)
                       : padded(in, "", std::max<int64_t>(bound.integer(2), 0), Side::left, " ");
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

constexpr std::array<NamedOperation, 20> text_filters = {{
    {"upper", converted<jinja::upper>},
    {"lower", converted<jinja::lower>},
    {"capitalize", converted<jinja::capitalize>},
    {"title", converted<title_words>},
    {"string", string},
    {"trim", trim},
    {"replace", replace},
    {"center", center},
    {"indent", indent},
    {"truncate", truncate},
    {"escape", escape},
    {"e", escape},
    {"forceescape", forceescape},
    {"safe", safe},
    {"format", format},
    {"wordcount", wordcount},
    {"urlencode", urlencode},
    {"tojson", tojson},
    {"xmlattr", xmlattr},
    {"pprint", pprint},
}};

}  // namespace

Operation find_text_filter(std::string_view name) {
  const auto found = std::find_if(text_filters.begin(), text_filters.end(),
                                  [&](const NamedOperation& each) { return each.name == name; });
  return found == text_filters.end() ? nullptr : found->operation;
}

}  // namespace fovea::jinja
