#include <fmt/format.h>

#include <algorithm>

#include "serve/request/api_error.h"
#include "serve/request/fields.h"

namespace fovea::serve {
namespace {

constexpr double kMostGrammar = 1 << 20;  // the library's limit

std::string text_of(const Json& value, const std::string& param) {
  if (!value.is_string() || is_neutral(value)) refuse_value(param, "a text");
  return value.get<std::string>();
}

// A JSON Schema is an object or its text.
Guide schema_guide(const Json& value, const std::string& field, const std::string& param) {
  if (value.is_string()) return {Guide::Kind::schema, field, text_of(value, param)};
  if (!value.is_object() && !value.is_boolean()) refuse_value(param, "a JSON Schema");
  return {Guide::Kind::schema, field, value.dump()};
}

Guide choices_guide(const Json& value, const std::string& field, const std::string& param) {
  const bool texts =
      value.is_array() && !value.empty() && value.size() <= 1024 &&
      std::all_of(value.begin(), value.end(), [](const Json& each) { return each.is_string(); });
  if (!texts) refuse_value(param, "1 to 1024 texts");
  return {Guide::Kind::choices, field, "", value.get<std::vector<std::string>>()};
}

// The names that servers give to the members of an object with one description, by its type.
struct FormatType {
  const char* type;
  Guide::Kind kind;
  std::vector<const char*> members;  // of which one has the description
};

const std::vector<FormatType>& format_types() {
  static const std::vector<FormatType> types = {
      {"json_object", Guide::Kind::schema, {"schema", "value"}},
      {"json_schema", Guide::Kind::schema, {"json_schema", "schema", "value"}},
      {"json", Guide::Kind::schema, {"value", "schema"}},
      {"regex", Guide::Kind::regex, {"regex", "pattern", "value"}},
      {"grammar", Guide::Kind::grammar, {"grammar", "value"}}};
  return types;
}

// Refuses members that would restrict the text, but belong to another type.
void check_members(const Json& format, const std::vector<const char*>& of_type) {
  for (const FormatType& each : format_types()) {
    for (const std::string member : each.members) {
      const auto found = format.find(member);
      if (found == format.end() || is_neutral(*found)) continue;
      if (std::find(of_type.begin(), of_type.end(), member) == of_type.end())
        refuse_value("response_format", fmt::format("no {} beside this type", member));
    }
  }
}

void put_response_format(const Json& format, GenerationRequest& request) {
  const std::string field = "response_format";
  const Json type = format.value("type", Json());
  if (format.empty() || type == "text") return check_members(format, {});
  const auto found = std::find_if(format_types().begin(), format_types().end(),
                                  [&](const FormatType& each) { return type == each.type; });
  if (found == format_types().end())
    refuse_value(field, "type text, json_object, json_schema, regex or grammar");
  check_members(format, found->members);
  for (const std::string member : found->members) {
    Json value = format.value(member, Json());
    if (value.is_null()) continue;
    std::string param = fmt::format("{}.{}", field, member);
    if (member == "json_schema") {
      param += ".schema";
      value = value.is_object() ? value.value("schema", Json()) : Json();
    }
    if (found->kind == Guide::Kind::schema)
      request.guides.push_back(schema_guide(value, field, param));
    else
      request.guides.push_back({found->kind, field, text_of(value, param)});
    return;
  }
  if (type != "json_object")
    refuse_value(type == "json_schema" ? field + ".json_schema.schema" : field,
                 fmt::format("a description in {}", found->members.front()));
  request.guides.push_back({Guide::Kind::json_object, field});
}

// vLLM's object, in which one description is given.
void put_structured_outputs(const Json& value, GenerationRequest& request) {
  const std::string field = "structured_outputs";
  const size_t before = request.guides.size();
  for (const auto& [key, member] : value.items()) {
    if (is_neutral(member) || key == "disable_fallback") continue;
    const std::string param = field + "." + key;
    if (key == "json")
      request.guides.push_back(schema_guide(member, field, param));
    else if (key == "regex")
      request.guides.push_back({Guide::Kind::regex, field, text_of(member, param)});
    else if (key == "grammar")
      request.guides.push_back({Guide::Kind::grammar, field, text_of(member, param)});
    else if (key == "choice")
      request.guides.push_back(choices_guide(member, field, param));
    else if (key == "json_object" && member == true)
      request.guides.push_back({Guide::Kind::json_object, field});
    else
      refuse_value(field, "json, regex, choice, grammar or json_object");
  }
  if (request.guides.size() > before + 1) refuse_value(field, "only one description");
}

void put_ollama_format(const Json& value, GenerationRequest& request) {
  if (is_neutral(value) && !value.is_object()) return;
  if (value == "json")
    request.guides.push_back({Guide::Kind::json_object, "format"});
  else if (value.is_object())
    request.guides.push_back(schema_guide(value, "format", "format"));
  else
    refuse_value("format", "json or a JSON Schema");
}

using GuideField = Field<GenerationRequest>;

GuideField text_field(const char* name, Guide::Kind kind, const char* help) {
  return {{name, FieldType::text, 0, kMostGrammar, "none", help},
          [name, kind](const Json& v, GenerationRequest& r) {
            if (!is_neutral(v)) r.guides.push_back({kind, name, v.get<std::string>()});
          }};
}

GuideField schema_field(const char* name, const char* help) {
  return {{name, FieldType::any, 0, 0, "none", help}, [name](const Json& v, GenerationRequest& r) {
            r.guides.push_back(schema_guide(v, name, name));
          }};
}

}  // namespace

Fields<GenerationRequest> guide_fields() {
  return {
      {{"response_format", FieldType::object, 0, 16, "text",
        "{\"type\": \"text\"}, {\"type\": \"json_object\"} (with schema: as json_schema), "
        "{\"type\": \"json_schema\", \"json_schema\": {\"schema\": {...}}}, {\"type\": \"regex\", "
        "\"regex\": ...} or {\"type\": \"grammar\", \"grammar\": ...}"},
       put_response_format},
      {{"structured_outputs", FieldType::object, 0, 16, "none",
        "one of {\"json\": {...}}, {\"regex\": ...}, {\"choice\": [...]}, {\"grammar\": ...} and "
        "{\"json_object\": true}"},
       put_structured_outputs},
      text_field("grammar", Guide::Kind::grammar,
                 "a grammar in llama.cpp's notation (GBNF) that the text satisfies"),
      text_field("guided_grammar", Guide::Kind::grammar, "alias of grammar"),
      text_field("ebnf", Guide::Kind::grammar, "alias of grammar"),
      text_field("guided_regex", Guide::Kind::regex,
                 "a regular expression that matches the whole text"),
      text_field("regex", Guide::Kind::regex, "alias of guided_regex"),
      {{"guided_choice", FieldType::strings, 1, 1024, "none", "the texts to choose from"},
       [](const Json& v, GenerationRequest& r) {
         r.guides.push_back(choices_guide(v, "guided_choice", "guided_choice"));
       }},
      schema_field("guided_json", "a JSON Schema, as an object or a text, that the text satisfies"),
      schema_field("json_schema", "alias of guided_json"),
      {{"format", FieldType::any, 0, 0, "none", "json, or a JSON Schema as an object"},
       put_ollama_format},
      {{"allowed_token_ids", FieldType::ids, 1, 1e6, "all",
        "the only tokens of the text; the end-of-text token too must be among them to occur"},
       [](const Json& v, GenerationRequest& r) {
         r.guides.push_back(
             {Guide::Kind::ids, "allowed_token_ids", "", {}, v.get<std::vector<int32_t>>()});
       }},
  };
}

}  // namespace fovea::serve
