// Fields that restrict the generated text, by the names that vLLM, llama.cpp, SGLang, Ollama and
// TGI know. A field that is not applied here is refused, since a client relies on it.

#include <fmt/format.h>

#include "serve/fields.h"

namespace fovea::serve {
namespace {

constexpr unsigned kWriting = kChat | kCompletion;
constexpr double kMostGrammar = 1 << 20;  // the library's limit

// Sets the name of the field that describes the text; only one may.
ApiRequest::Guide& guide_of(ApiRequest& request, const std::string& field) {
  ApiRequest::Guide& guide = request.guide;
  if (!guide.field.empty())
    throw ApiError{400,
                   fmt::format("{}: cannot be combined with {}; expected one description of the "
                               "text",
                               field, guide.field),
                   field, "invalid_value"};
  guide.field = field;
  return guide;
}

void put_grammar(const Json& value, ApiRequest& request, const std::string& field) {
  guide_of(request, field).grammar = value;
}

void put_regex(const Json& value, ApiRequest& request, const std::string& field) {
  guide_of(request, field).regex = value;
}

void put_schema(const Json& value, ApiRequest& request, const std::string& field) {
  guide_of(request, field).schema = value;
}

void put_choices(const Json& value, ApiRequest& request, const std::string& field) {
  guide_of(request, field).choices = value.get<std::vector<std::string>>();
}

[[noreturn]] void refuse(const std::string& field, const std::string& expected) {
  throw ApiError{400, fmt::format("{}: expected {}", field, expected), field, "invalid_value"};
}

bool is_texts(const Json& value) {
  if (!value.is_array() || value.empty() || value.size() > 1024) return false;
  for (const Json& text : value)
    if (!text.is_string()) return false;
  return true;
}

// {"json": ...}, {"regex": ...}, {"choice": [...]}, {"grammar": ...} or {"json_object": true} of
// vLLM.
void put_structured(const Json& value, ApiRequest& request) {
  for (const auto& item : value.items()) {
    const Json& described = item.value();
    const std::string field = "structured_outputs." + item.key();
    if (described.is_null() || described == false) continue;
    if (item.key() == "json") {
      put_schema(described, request, field);
    } else if (item.key() == "json_object" && described == true) {
      put_schema({{"type", "object"}}, request, field);
    } else if (item.key() == "choice") {
      if (!is_texts(described)) refuse(field, "an array of 1 to 1024 texts");
      put_choices(described, request, field);
    } else if (item.key() == "regex" || item.key() == "grammar") {
      if (!described.is_string()) refuse(field, "a string");
      (item.key() == "regex" ? put_regex : put_grammar)(described, request, field);
    } else if (!item.key().starts_with("disable_")) {
      refuse("structured_outputs",
             "json, json_object, regex, choice or grammar; " + item.key() + " is not supported");
    }
  }
}

// "json" or a JSON Schema, of Ollama.
void put_json_format(const Json& value, ApiRequest& request) {
  if (value == "") return;
  if (value == "json") return put_schema({{"type", "object"}}, request, "format");
  if (!value.is_object()) refuse("format", "json or a JSON Schema");
  put_schema(value, request, "format");
}

using PutNamed = void (*)(const Json&, ApiRequest&, const std::string&);

Field guiding(std::string name, FieldType type, double least, double most, std::string help,
              PutNamed put) {
  Field field{.name = name,
              .of = kWriting,
              .type = type,
              .least = least,
              .most = most,
              .initial = "none",
              .help = std::move(help)};
  field.put = [put, name](const Json& v, ApiRequest& r) { put(v, r, name); };
  return field;
}

// A field of other servers that this one cannot apply. A value of `none` asks for nothing.
Field refused(std::string name, const char* why, Json none = nullptr) {
  Field field{.name = name,
              .of = kWriting,
              .type = FieldType::any,
              .initial = "none",
              .help = fmt::format("refused: {}", why)};
  field.put = [name, why, none](const Json& v, ApiRequest&) {
    if (v != none && v != false && !(v.is_array() && v.empty()))
      throw ApiError{400, fmt::format("{}: is not supported: {}", name, why), name,
                     "unsupported_field"};
  };
  return field;
}

}  // namespace

std::vector<Field> constraint_fields() {
  const FieldType text = FieldType::text, any = FieldType::any;
  const auto alias = [](const char* of) { return fmt::format("alias of {}", of); };
  return {
      guiding("grammar", text, 0, kMostGrammar,
              "a grammar in llama.cpp's notation (GBNF) that the text satisfies", put_grammar),
      guiding("guided_grammar", text, 0, kMostGrammar, alias("grammar"), put_grammar),
      guiding("guided_regex", text, 0, kMostGrammar,
              "a regular expression that matches the whole text", put_regex),
      guiding("regex", text, 0, kMostGrammar, alias("guided_regex"), put_regex),
      guiding("guided_choice", FieldType::strings, 1, 1024, "the texts to choose from",
              put_choices),
      guiding("guided_json", any, 0, 0,
              "a JSON Schema, as an object or a text, that the text satisfies", put_schema),
      guiding("json_schema", any, 0, 0, alias("guided_json"), put_schema),
      {"format", kWriting, any, 0, 0, "none", "\"json\" or a JSON Schema, as in Ollama's API",
       put_json_format},
      {"structured_outputs", kWriting, FieldType::object, 0, 16, "none",
       "as in vLLM: {\"json\": ...}, {\"regex\": ...}, {\"choice\": [...]}, {\"grammar\": ...} or "
       "{\"json_object\": true}",
       put_structured},
      refused("ebnf", "expected grammar, in llama.cpp's notation"),
      refused("structural_tag", "expected tools or response_format"),
      refused("allowed_token_ids", "expected logit_bias, or a grammar"),
      refused("guided_whitespace_pattern", "expected a grammar"),
      refused("whitespace_pattern", "expected a grammar"),
      refused("stop_regex", "expected stop"),
      refused("force_words", "expected guided_regex, or a grammar"),
      refused("bad_words_ids", "expected bad_words, or logit_bias"),
      refused("banned_tokens", "expected bad_words, or logit_bias"),
      refused("banned_strings", "expected bad_words"),
      refused("logits_processors", "the server runs no code of requests"),
      refused("custom_logit_processor", "the server runs no code of requests"),
      refused("include_stop_str_in_output", "a text ends before its stop string"),
      refused("use_beam_search", "fovea generate and fovea translate have beams"),
      refused("trim_stop", "a text ends before its stop string", Json(true)),
  };
}

}  // namespace fovea::serve
