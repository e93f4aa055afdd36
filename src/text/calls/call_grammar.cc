#include "calls/call_grammar.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "calls/lenient_value.h"
#include "grammar/grammar_rules.h"
#include "grammar/json_strings.h"
#include "grammar/syntax.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;
using Sequence = Grammar::Sequence;
using Symbol = Grammar::Symbol;

constexpr int kMostDepthOfReferences = 16;

// The arguments of one function.
class Arguments {
 public:
  Arguments(const CallFormat& format, const Signature& function, Grammar& grammar)
      : format_(format), function_(function), grammar_(grammar), rules_(grammar, "tools") {}

  Sequence sequence() {
    switch (format_.style) {
      case ArgumentStyle::json: break;
      case ArgumentStyle::tagged: return tagged();
      case ArgumentStyle::keywords: return keywords();
      case ArgumentStyle::braces: return braces(function_.parameters, 0);
    }
    return {schema(function_.parameters)};
  }

 private:
  struct Property {
    std::string name;
    const ordered_json* schema;
    bool required;
  };

  // Returns the schema to which a reference within the parameters leads.
  const ordered_json& resolved(const ordered_json& schema) const {
    const ordered_json* at = &schema;
    for (int depth = 0; at->is_object() && at->contains("$ref"); ++depth) {
      const ordered_json& reference = (*at)["$ref"];
      check(depth < kMostDepthOfReferences && reference.is_string() &&
                reference.get_ref<const std::string&>().starts_with('#'),
            "$ref: expected a reference within the schema");
      at = &function_.parameters.at(
          ordered_json::json_pointer(reference.get_ref<const std::string&>().substr(1)));
    }
    return *at;
  }

  std::vector<Property> properties_of(const ordered_json& schema) const {
    std::vector<Property> properties;
    const ordered_json& object = resolved(schema);
    if (!object.is_object() || !object.contains("properties")) return properties;
    const ordered_json required = object.value("required", ordered_json::array());
    for (const auto& [name, property] : object["properties"].items())
      properties.push_back({name, &property, std::ranges::count(required, ordered_json(name)) > 0});
    return properties;
  }

  // Returns the rule of the JSON values of a part of the parameters.
  Symbol schema(const ordered_json& part) {
    ordered_json whole = part;
    if (whole.is_object() && &part != &function_.parameters)
      for (const char* key : {"$defs", "definitions"})
        if (function_.parameters.contains(key) && !whole.contains(key))
          whole[key] = function_.parameters[key];
    return add_schema(whole.dump(), grammar_, format_.python() ? Words::python : Words::json);
  }

  // Each of the properties that is required, or also is not, in their order.
  Sequence tagged() {
    Sequence all;
    for (const Property& each : properties_of(function_.parameters)) {
      const Sequence part = rules_.text(format_.key) + rules_.text(each.name) +
                            before_value(each.name) + tagged_value(each) +
                            rules_.text(format_.value_end);
      all = all + (each.required ? part : Sequence{rules_.one_of({{}, part})});
    }
    return all;
  }

  // The text between a name and its value, which may tell the type of the value.
  Sequence before_value(const std::string& name) {
    const std::string_view mark = format_.value;
    const size_t at = std::min(mark.find(CallFormat::kIsText), mark.find(CallFormat::kType));
    if (at == mark.npos) return rules_.text(mark);
    const bool text = function_.takes_text(name);
    std::vector<Sequence> words;
    if (mark[at] == CallFormat::kIsText) {
      words = {rules_.text(text ? "true" : "false")};
    } else if (text) {
      words = {rules_.text("string")};
    } else {
      for (const char* type : {"number", "boolean", "array", "object", "null"})
        words.push_back(rules_.text(type));
    }
    return rules_.text(mark.substr(0, at)) + Sequence{rules_.one_of(words)} +
           rules_.text(mark.substr(at + 1));
  }

  Sequence tagged_value(const Property& property) {
    if (!function_.takes_text(property.name)) return {schema(*property.schema)};
    const ordered_json& type = resolved(*property.schema);
    if (!format_.cdata) return raw_text(type, trimmed(format_.value_end));
    const Sequence section =
        rules_.text(kCdata) + raw_text(type, kCdataEnd) + rules_.text(kCdataEnd);
    return {rules_.one_of({raw_text(type, "<"), section})};
  }

  // A text that is written as it is, and does not contain the mark after it.
  Sequence raw_text(const ordered_json& schema, std::string_view mark) {
    if (const auto values = texts_of(schema); !values.empty()) {
      std::vector<Sequence> all;
      for (const std::string& value : values) all.push_back(rules_.text(value));
      return {rules_.one_of(all)};
    }
    if (schema.contains("pattern")) return {matching(schema["pattern"])};
    const auto least = schema.value("minLength", int64_t{0});
    const bool limited = schema.contains("maxLength") || least > 0;
    const char* const format = pattern_of_format(schema.value("format", ""));
    if (format != nullptr && !limited) return {matching(format)};
    if (limited) {
      const Sequence one = {character_without(mark[0])};
      const auto most = schema.contains("maxLength")
                            ? std::optional(schema["maxLength"].get<int64_t>())
                            : std::nullopt;
      return {rules_.repeated(one, one, least, most)};
    }
    return {text_without(mark)};
  }

  static std::vector<std::string> texts_of(const ordered_json& schema) {
    if (schema.contains("enum")) return schema["enum"].get<std::vector<std::string>>();
    if (schema.contains("const")) return {schema["const"].get<std::string>()};
    return {};
  }

  // The texts that an expression matches as a whole.
  Symbol matching(const std::string& pattern) {
    std::vector<Sequence> ways;
    for (RegexWay& way : parse_regex(pattern, "pattern")) {
      std::vector<Syntax> rule;
      rule.push_back(std::move(way.text));
      ways.push_back({lower(std::move(rule), "pattern", grammar_)});
    }
    return rules_.one_of(ways);
  }

  Symbol characters(SyntaxNode::Ranges ranges) {
    std::vector<Syntax> rule;
    rule.push_back(one_character_of(std::move(ranges)));
    return lower(std::move(rule), "tools", grammar_);
  }

  Symbol character_without(char excluded) {
    const auto c = static_cast<char32_t>(static_cast<unsigned char>(excluded));
    return characters(other_characters({{0, 0}, {c, c}}));
  }

  // All texts without a mark, by the states of Knuth, Morris and Pratt's matcher.
  Symbol text_without(std::string_view mark) {
    const std::string key(mark);
    if (const auto known = texts_.find(key); known != texts_.end()) return known->second;
    const Symbol wide = characters(other_characters({{0, 0x7F}}));
    std::vector<Symbol> states;
    for (size_t i = 0; i < mark.size(); ++i) states.push_back(rules_.rule());
    for (size_t i = 0; i < mark.size(); ++i) {
      std::map<size_t, Grammar::Bytes> next;  // by state: the bytes that lead to it
      for (int byte = 1; byte < 0x80; ++byte) {
        const std::string read = key.substr(0, i) + static_cast<char>(byte);
        size_t state = std::min(read.size(), mark.size());
        while (read.substr(read.size() - state) != mark.substr(0, state)) --state;
        if (state < mark.size()) next[state].set(static_cast<size_t>(byte));
      }
      std::vector<Sequence> ways = {{}, {wide, states[0]}};
      for (const auto& [state, bytes] : next)
        ways.push_back({grammar_.one_of(bytes), states[state]});
      rules_.add(states[i], ways);
    }
    return texts_.emplace(key, states[0]).first->second;
  }

  // name=value pairs or name:value pairs of the properties in their order, with commas between.
  Sequence pairs(const ordered_json& object, const char* sign, const Sequence& comma, int depth) {
    const std::vector<Property> properties = properties_of(object);
    // Rules for the pairs from a property on: as the first of all, and after others.
    Symbol first = rules_.one_of({{}}), later = first;
    for (auto each = properties.rbegin(); each != properties.rend(); ++each) {
      const Sequence pair =
          rules_.text(each->name) + rules_.text(sign) +
          (format_.style == ArgumentStyle::keywords ? Sequence{schema(*each->schema)}
                                                    : brace_value(*each->schema, depth + 1)) +
          Sequence{later};
      std::vector<Sequence> at_first = {pair}, after = {comma + pair};
      if (!each->required) {
        at_first.push_back({first});
        after.push_back({later});
      }
      first = rules_.one_of(at_first);
      later = rules_.one_of(after);
    }
    return {first};
  }

  Sequence keywords() {
    const Symbol space = rules_.one_of({{}, rules_.text(" ")});
    return pairs(function_.parameters, "=", rules_.text(",") + Sequence{space}, 0);
  }

  Sequence braces(const ordered_json& object, int depth) {
    return rules_.text("{") + pairs(object, ":", rules_.text(","), depth) + rules_.text("}");
  }

  Sequence brace_value(const ordered_json& given, int depth) {
    check(depth < kMostDepthOfReferences, "the schema is nested too deeply for this format");
    const ordered_json& schema = resolved(given);
    check(schema.is_object(), "expected a schema with a type");
    for (const char* key : {"anyOf", "oneOf"}) {
      if (!schema.contains(key)) continue;
      std::vector<Sequence> ways;
      for (const ordered_json& way : schema[key]) ways.push_back(brace_value(way, depth + 1));
      return {rules_.one_of(ways)};
    }
    if (!texts_of_all(schema).empty() || schema.value("type", ordered_json()) == "string")
      return rules_.text(format_.key) + raw_text(schema, format_.key) + rules_.text(format_.key);
    const ordered_json type = schema.value("type", ordered_json());
    if (type == "object") return braces(schema, depth);
    if (type == "array") return brace_list(schema, depth);
    check(type.is_string(), "expected a schema with one type");
    return {this->schema(schema)};
  }

  // The values of an enum or a const, if they are texts.
  static std::vector<std::string> texts_of_all(const ordered_json& schema) {
    const ordered_json values =
        schema.value("enum", schema.contains("const") ? ordered_json::array({schema["const"]})
                                                      : ordered_json::array());
    const bool texts =
        std::ranges::all_of(values, [](const ordered_json& each) { return each.is_string(); });
    return texts ? values.get<std::vector<std::string>>() : std::vector<std::string>();
  }

  Sequence brace_list(const ordered_json& schema, int depth) {
    check(schema.contains("items"), "items is missing");
    const Sequence item = brace_value(schema["items"], depth + 1);
    const auto most = schema.contains("maxItems") ? std::optional(schema["maxItems"].get<int64_t>())
                                                  : std::nullopt;
    const auto least = schema.value("minItems", int64_t{0});
    return rules_.text("[") +
           Sequence{rules_.repeated(item, rules_.text(",") + item, least, most)} + rules_.text("]");
  }

  const CallFormat& format_;
  const Signature& function_;
  Grammar& grammar_;
  GrammarRules rules_;
  std::map<std::string, Symbol> texts_;  // by mark
};

class Calls {
 public:
  Calls(const CallFormat& format, Grammar& grammar)
      : format_(format), grammar_(grammar), rules_(grammar, "tools") {}

  Symbol section(const std::vector<CallableFunction>& functions, bool only_one,
                 std::vector<std::string>& warnings) {
    std::vector<Sequence> ways;
    for (const CallableFunction& function : functions)
      ways.push_back(literal(format_.call) + rules_.text(function.name) +
                     literal(format_.arguments) + arguments(function, warnings) +
                     literal(format_.call_end));
    const Sequence call = {rules_.one_of(ways)};
    const Sequence more = literal(format_.separator) + call;
    const bool one = only_one || !format_.many;
    const Symbol calls =
        rules_.repeated(call, more, 1, one ? std::optional<int64_t>(1) : std::nullopt);
    return rules_.one_of({literal(format_.begin) + Sequence{calls} + literal(format_.end)});
  }

 private:
  // The text of a format; a number has up to three digits.
  Sequence literal(std::string_view text) {
    Sequence all;
    for (const char c : text)
      all = all + (c == CallFormat::kDigits ? Sequence{number()}
                   : c == CallFormat::kId   ? Sequence{id()}
                                            : rules_.text({&c, 1}));
    return all;
  }

  Symbol id() {
    const Sequence one = {rules_.one_of(
        {{grammar_.range('0', '9')}, {grammar_.range('a', 'z')}, {grammar_.range('A', 'Z')}})};
    return rules_.repeated(one, one, 9, 9);
  }

  Symbol number() {
    const Sequence digit = {grammar_.range('0', '9')};
    return rules_.repeated(digit, digit, 1, 3);
  }

  Sequence arguments(const CallableFunction& function, std::vector<std::string>& warnings) {
    try {
      return of_schema(parameters_of(function), function);
    } catch (const Error& error) {
      refuse_or_warn(function, error.what(), warnings);
    } catch (const nlohmann::json::exception& error) {
      refuse_or_warn(function, error.what(), warnings);
    }
    return of_schema(ordered_json{{"type", "object"}}, function);
  }

  Sequence of_schema(const ordered_json& schema, const CallableFunction& function) {
    const Signature& signature = signatures_.emplace_back(Signature{function.name, schema});
    return Arguments(format_, signature, grammar_).sequence();
  }

  static void refuse_or_warn(const CallableFunction& function, const std::string& what,
                             std::vector<std::string>& warnings) {
    std::string message = fmt::format("the parameters of \"{}\": {}", function.name, what);
    if (function.strict) fail(ErrorKind::InvalidArgument, "{}", message);
    warnings.push_back(std::move(message));
  }

  const CallFormat& format_;
  Grammar& grammar_;
  GrammarRules rules_;
  std::vector<Signature> signatures_;
};

}  // namespace

std::string call_schema(const std::vector<CallableFunction>& functions) {
  ordered_json ways = ordered_json::array();
  for (const CallableFunction& function : functions)
    ways.push_back(
        {{"type", "object"},
         {"properties",
          {{"name", {{"const", function.name}}}, {"arguments", parameters_of(function)}}},
         {"required", {"name", "arguments"}},
         {"additionalProperties", false}});
  return ordered_json{{"anyOf", ways}}.dump();
}

SchemaGrammar call_grammar(const CallFormat& format, const std::vector<CallableFunction>& functions,
                           bool only_one, const Grammar::Bytes& usable,
                           std::vector<std::string>& warnings) {
  auto grammar = std::make_shared<Grammar>(usable);
  const Symbol root = Calls(format, *grammar).section(functions, only_one, warnings);
  grammar->finish();
  return {std::move(grammar), root.index};
}

}  // namespace fovea::text
