#include "serve/fields.h"

namespace fovea::serve {
namespace {

constexpr unsigned kBoth = kChat | kCompletion;
constexpr double kMostTokens = 2147483647;  // far beyond any context
constexpr double kMostText = 1e9;           // the body's own limit is what holds

std::vector<std::string> texts(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

void put_max_tokens(const Json& value, ApiRequest& request) {
  request.options.max_tokens = value.get<int64_t>();
  request.max_tokens_given = request.options.max_tokens >= 0;
}

void put_repetition_penalty(const Json& value, ApiRequest& request) {
  request.options.sampling.repetition_penalty = value.get<float>();
}

void put_biases(const Json& value, ApiRequest& request) {
  for (const auto& [id, bias] : value.items()) {
    request.options.sampling.logit_bias.emplace_back(std::stoi(id), bias.get<float>());
  }
}

std::vector<Prompt> prompts(const Json& value) {
  std::vector<Prompt> all;
  const auto one = [&](const Json& prompt) {
    if (prompt.is_string()) {
      all.emplace_back(prompt.get<std::string>());
    } else {
      all.emplace_back(prompt.get<std::vector<int32_t>>());
    }
  };
  const bool many = value.is_array() && !value.empty() && !value[0].is_number();
  if (!many) {
    one(value);
  } else {
    for (const Json& prompt : value) one(prompt);
  }
  return all;
}

void put_encoding(const Json& value, ApiRequest& request) {
  request.base64 = value == "base64";
  if (request.base64 || value == "float") return;
  throw ApiError{400, "encoding_format: expected float or base64", "encoding_format",
                 "invalid_value"};
}

void put_direction(const Json& value, ApiRequest&) {
  if (value == "right" || value == "Right") return;
  throw ApiError{400, "truncation_direction: expected right; only the end of a text is cut",
                 "truncation_direction", "invalid_value"};
}

void put_format(const Json& value, ApiRequest&) {
  if (value == "text") return;
  throw ApiError{400, "format: expected text; markup is not translated", "format", "invalid_value"};
}

void put_stream_options(const Json& value, ApiRequest& request) {
  const auto found = value.find("include_usage");
  if (found == value.end() || found->is_null()) return;
  if (!found->is_boolean()) {
    throw ApiError{400, "stream_options.include_usage: expected true or false",
                   "stream_options.include_usage", "invalid_type"};
  }
  request.include_usage = found->get<bool>();
}

const std::vector<Field> kFields = {
    {"model", kBoth | kTokenize | kDetokenize | kEmbeddings | kEmbed | kRerank | kTranslate,
     FieldType::text, 0, 1024, "the first that can",
     "which model answers; its name is in GET /v1/models",
     [](const Json& v, ApiRequest& r) { r.model = v; }},
    {"messages", kChat, FieldType::messages, 1, 4096, "",
     "the conversation: objects with role and content",
     [](const Json& v, ApiRequest& r) { r.messages = v; }, true},
    {"prompt", kCompletion, FieldType::prompts, 1, 32, "",
     "a text, token ids, or an array of such; each is answered",
     [](const Json& v, ApiRequest& r) { r.prompts = prompts(v); }, true},

    {"max_tokens", kBoth, FieldType::integer, -1, kMostTokens, "model",
     "tokens to write at most; -1 = what the context has room for", put_max_tokens},
    {"max_completion_tokens", kChat, FieldType::integer, -1, kMostTokens, "model",
     "the newer name of max_tokens", put_max_tokens},
    {"min_tokens", kBoth, FieldType::integer, 0, kMostTokens, "model", "no end before these",
     [](const Json& v, ApiRequest& r) { r.options.min_tokens = v; }},
    {"n", kBoth, FieldType::integer, 1, 16, "1", "so many answers, drawn apart",
     [](const Json& v, ApiRequest& r) { r.options.answers = v; }},
    {"best_of", kCompletion, FieldType::integer, 1, 16, "n", "expected to be n",
     [](const Json& v, ApiRequest& r) { r.best_of = v; }},
    {"stop", kBoth, FieldType::stops, 0, 16, "none",
     "end before any of these texts, of at most 256 bytes each",
     [](const Json& v, ApiRequest& r) { r.options.stop = texts(v); }},
    {"stop_token_ids", kBoth, FieldType::ids, 0, 64, "none", "end at any of these tokens",
     [](const Json& v, ApiRequest& r) {
       for (const Json& id : v) r.options.stop_ids.push_back(id);
     }},
    {"ignore_eos", kBoth, FieldType::boolean, 0, 0, "false", "go on past the end-of-text token",
     [](const Json& v, ApiRequest& r) { r.options.ignore_end = v; }},

    {"temperature", kBoth, FieldType::number, 0, 100, "model",
     "higher is bolder; 0 = always the likeliest token",
     [](const Json& v, ApiRequest& r) { r.options.sampling.temperature = v; }},
    {"top_k", kBoth, FieldType::integer, -1, kMostTokens, "model",
     "choose among the k likeliest tokens; 0 or -1 = all",
     [](const Json& v, ApiRequest& r) {
       r.options.sampling.top_k = std::max<int64_t>(0, v.get<int64_t>());
     }},
    {"top_p", kBoth, FieldType::number, 1e-6, 1, "model",
     "choose among the likeliest tokens with this much probability; 1 = all",
     [](const Json& v, ApiRequest& r) { r.options.sampling.top_p = v; }},
    {"min_p", kBoth, FieldType::number, 0, 1, "model",
     "none below this share of the likeliest token's probability; 0 = all",
     [](const Json& v, ApiRequest& r) { r.options.sampling.min_p = v; }},
    {"typical_p", kBoth, FieldType::number, 1e-6, 1, "model",
     "the tokens whose surprise is nearest to the expected one; 1 = all",
     [](const Json& v, ApiRequest& r) { r.options.sampling.typical_p = v; }},
    {"repetition_penalty", kBoth, FieldType::number, 0.01, 100, "model",
     "above 1: seen tokens get less likely", put_repetition_penalty},
    {"repeat_penalty", kBoth, FieldType::number, 0.01, 100, "model",
     "another name of repetition_penalty", put_repetition_penalty},
    {"presence_penalty", kBoth, FieldType::number, -2, 2, "0",
     "taken off the logit of each token that was written",
     [](const Json& v, ApiRequest& r) { r.options.sampling.presence_penalty = v; }},
    {"frequency_penalty", kBoth, FieldType::number, -2, 2, "0",
     "taken off the logit of a token for each time it was written",
     [](const Json& v, ApiRequest& r) { r.options.sampling.frequency_penalty = v; }},
    {"no_repeat_ngram_size", kBoth, FieldType::integer, 0, 1024, "model",
     "no so many tokens in a row twice; 0 = off",
     [](const Json& v, ApiRequest& r) { r.options.sampling.no_repeat_ngram = v; }},
    {"logit_bias", kBoth, FieldType::biases, -100, 100, "none",
     "added to the logits of tokens, given by their ids; at most 1024", put_biases},
    {"seed", kBoth, FieldType::integer, -9223372036854775808.0, 9223372036854775807.0, "random",
     "the same seed writes the same text",
     [](const Json& v, ApiRequest& r) {
       r.options.sampling.seed = static_cast<uint64_t>(v.get<int64_t>());
       r.seed_given = true;
     }},

    {"stream", kBoth, FieldType::boolean, 0, 0, "false", "send the answer as it is written",
     [](const Json& v, ApiRequest& r) { r.stream = v; }},
    {"stream_options", kBoth, FieldType::object, 0, 16, "none",
     "{\"include_usage\": true} ends the stream with the token counts", put_stream_options},
    {"logprobs", kChat, FieldType::boolean, 0, 0, "false", "the log-probability of each token",
     [](const Json& v, ApiRequest& r) { r.logprobs = v; }},
    {"top_logprobs", kChat, FieldType::integer, 0, 20, "0",
     "so many likeliest tokens beside each; needs logprobs",
     [](const Json& v, ApiRequest& r) { r.options.logprobs = v; }},
    {"logprobs", kCompletion, FieldType::integer, 0, 20, "none",
     "the log-probability of each token and of so many likeliest ones",
     [](const Json& v, ApiRequest& r) { r.options.logprobs = v; }},
    {"return_token_ids", kBoth, FieldType::boolean, 0, 0, "false",
     "token_ids beside the text of each choice",
     [](const Json& v, ApiRequest& r) { r.return_ids = v; }},
    {"echo", kCompletion, FieldType::boolean, 0, 0, "false", "the prompt in front of the answer",
     [](const Json& v, ApiRequest& r) { r.echo = v; }},

    {"response_format", kBoth, FieldType::object, 0, 16, "text",
     "{\"type\": \"text\"}, {\"type\": \"json_object\"} or {\"type\": \"json_schema\", "
     "\"json_schema\": {\"schema\": {...}}}",
     [](const Json& v, ApiRequest& r) { r.response_format = v; }},
    {"tools", kChat, FieldType::array, 0, 128, "none", "functions that the model may call",
     [](const Json& v, ApiRequest& r) { r.tools = v; }},
    {"tool_choice", kChat, FieldType::any, 0, 0, "auto",
     "none, auto, required, or {\"type\": \"function\", \"function\": {\"name\": ...}}",
     [](const Json& v, ApiRequest& r) { r.tool_choice = v; }},
    {"documents", kChat, FieldType::array, 0, 128, "none", "texts that the template may show",
     [](const Json& v, ApiRequest& r) { r.documents = v; }},
    {"chat_template_kwargs", kChat, FieldType::object, 0, 64, "none",
     "more variables for the chat template, such as enable_thinking",
     [](const Json& v, ApiRequest& r) { r.template_variables.update(v); }},
    {"reasoning_effort", kChat, FieldType::text, 0, 64, "none", "a variable for the template",
     [](const Json& v, ApiRequest& r) { r.template_variables["reasoning_effort"] = v; }},
    {"add_generation_prompt", kChat, FieldType::boolean, 0, 0, "true",
     "end the prompt where the assistant begins",
     [](const Json& v, ApiRequest& r) { r.add_generation_prompt = v; }},

    {"fovea", kBoth, FieldType::object, 0, 16, "none",
     "what to show of the model at each token that is written; no bit of the answer changes",
     [](const Json&, ApiRequest&) {}},
    {"fovea.attention", kBoth, FieldType::object, 0, 16, "none",
     "the tokens that one head of the decoder looked at most",
     [](const Json&, ApiRequest& r) { r.trace.attention = AttentionTraceOptions::Attention(); }},
    {"fovea.attention.layer", kBoth, FieldType::integer, 0, 65535, "0", "counted from 0",
     [](const Json& v, ApiRequest& r) { r.trace.attention->layer = v; }},
    {"fovea.attention.head", kBoth, FieldType::integer, 0, 65535, "0", "counted from 0",
     [](const Json& v, ApiRequest& r) { r.trace.attention->head = v; }},
    {"fovea.attention.top_k", kBoth, FieldType::integer, 1, 1024, "8",
     "so many tokens, those with the largest weights",
     [](const Json& v, ApiRequest& r) { r.trace.attention->top_k = v; }},
    {"fovea.hidden_states", kBoth, FieldType::object, 0, 16, "none",
     "the residual stream, a vector for each token",
     [](const Json&, ApiRequest& r) { r.trace.hidden = 0; }},
    {"fovea.hidden_states.layer", kBoth, FieldType::integer, 0, 65535, "0",
     "in front of this layer; the number of layers: behind the final norm",
     [](const Json& v, ApiRequest& r) { r.trace.hidden = v.get<int64_t>(); }},

    {"input", kEmbeddings, FieldType::prompts, 1, 2048, "",
     "a text, token ids, or an array of such; each becomes a vector",
     [](const Json& v, ApiRequest& r) { r.inputs = prompts(v); }, true},
    {"encoding_format", kEmbeddings, FieldType::text, 0, 16, "float",
     "float, or base64: 4 bytes for each number, little-endian", put_encoding},
    {"inputs", kEmbed, FieldType::prompts, 1, 2048, "",
     "a text, token ids, or an array of such; each becomes a vector",
     [](const Json& v, ApiRequest& r) { r.inputs = prompts(v); }, true},
    {"dimensions", kEmbeddings | kEmbed, FieldType::integer, 1, 65536, "all",
     "only the first numbers of each vector, for models trained so",
     [](const Json& v, ApiRequest& r) { r.dimensions = v; }},
    {"normalize", kEmbed, FieldType::boolean, 0, 0, "true", "vectors of length 1",
     [](const Json& v, ApiRequest& r) { r.normalise = v.get<bool>(); }},
    {"prompt_name", kEmbed, FieldType::text, 0, 256, "the model's default",
     "the model's prompt of this name goes in front of each text",
     [](const Json& v, ApiRequest& r) { r.prompt_name = v; }},

    {"query", kRerank, FieldType::text, 0, kMostText, "", "what the texts should answer",
     [](const Json& v, ApiRequest& r) { r.query = v; }, true},
    {"texts", kRerank, FieldType::strings, 1, 2048, "", "each gets a score",
     [](const Json& v, ApiRequest& r) { r.texts = v.get<std::vector<std::string>>(); }, true},
    {"raw_scores", kRerank, FieldType::boolean, 0, 0, "false",
     "the model's number as it is, not through its sigmoid",
     [](const Json& v, ApiRequest& r) { r.raw_scores = v; }},
    {"return_text", kRerank, FieldType::boolean, 0, 0, "false", "each text beside its score",
     [](const Json& v, ApiRequest& r) { r.return_text = v; }},
    {"truncate", kEmbed | kRerank, FieldType::boolean, 0, 0, "true",
     "cut texts of too many tokens; else they are refused",
     [](const Json& v, ApiRequest& r) { r.truncate = v; }},
    {"truncation_direction", kEmbed | kRerank, FieldType::text, 0, 16, "right",
     "which end is cut: right", put_direction},

    {"q", kTranslate, FieldType::texts, 1, 256, "", "a text, or an array of texts",
     [](const Json& v, ApiRequest& r) {
       r.texts = texts(v);
       r.many = v.is_array();
     },
     true},
    {"source", kTranslate, FieldType::text, 1, 64, "",
     "code of the language of the texts, such as de; auto = the one that the model reads",
     [](const Json& v, ApiRequest& r) { r.source = v; }, true},
    {"target", kTranslate, FieldType::text, 1, 64, "", "code of the language to translate into",
     [](const Json& v, ApiRequest& r) { r.target = v; }, true},
    {"format", kTranslate, FieldType::text, 0, 16, "text", "text", put_format},
    {"alternatives", kTranslate, FieldType::integer, 0, 15, "0", "so many other translations",
     [](const Json& v, ApiRequest& r) { r.alternatives = v; }},

    {"content", kTokenize, FieldType::text, 0, kMostText, "", "the text",
     [](const Json& v, ApiRequest& r) { r.text = v; }},
    {"prompt", kTokenize, FieldType::text, 0, kMostText, "", "another name of content",
     [](const Json& v, ApiRequest& r) { r.text = v; }},
    {"add_special", kTokenize, FieldType::boolean, 0, 0, "false",
     "the tokens that the model's texts begin and end with, such as [CLS]",
     [](const Json& v, ApiRequest& r) { r.add_special = v; }},
    {"parse_special", kTokenize, FieldType::boolean, 0, 0, "true",
     "whether the name of a special token in the text is that token",
     [](const Json& v, ApiRequest& r) { r.parse_special = v; }},
    {"with_pieces", kTokenize, FieldType::boolean, 0, 0, "false", "each token's text beside its id",
     [](const Json& v, ApiRequest& r) { r.with_pieces = v; }},
    {"tokens", kDetokenize, FieldType::ids, 0, 1e6, "", "the token ids",
     [](const Json& v, ApiRequest& r) { r.ids = v.get<std::vector<int32_t>>(); }, true},
    {"skip_special_tokens", kDetokenize, FieldType::boolean, 0, 0, "false",
     "leave special tokens out", [](const Json& v, ApiRequest& r) { r.skip_special = v; }},
};

const char* name_of(FieldType type) {
  static const char* const names[] = {"boolean",  "integer", "number", "text",    "stops",
                                      "strings",  "texts",   "ids",    "prompts", "biases",
                                      "messages", "array",   "object", "any"};
  return names[static_cast<int>(type)];
}

}  // namespace

const std::vector<Field>& fields() { return kFields; }

const std::vector<FieldsOf>& routes_with_fields() {
  static const std::vector<FieldsOf> routes = {{kChat, "/v1/chat/completions"},
                                               {kCompletion, "/v1/completions"},
                                               {kTokenize, "/tokenize"},
                                               {kDetokenize, "/detokenize"},
                                               {kEmbeddings, "/v1/embeddings"},
                                               {kEmbed, "/embed"},
                                               {kRerank, "/rerank"},
                                               {kTranslate, "/translate"}};
  return routes;
}

std::string fields_json() {
  Json all = Json::array();
  for (const Field& field : kFields) {
    Json of = Json::array();
    for (const FieldsOf& route : routes_with_fields()) {
      if (field.of & route.of) of.push_back(route.path);
    }
    all.push_back({{"name", field.name},
                   {"of", of},
                   {"type", name_of(field.type)},
                   {"least", field.least},
                   {"most", field.most},
                   {"default", field.initial},
                   {"required", field.required},
                   {"help", field.help}});
  }
  return all.dump();
}

}  // namespace fovea::serve
