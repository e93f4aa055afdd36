#include "serve/fields.h"

namespace fovea::serve {
namespace {

constexpr unsigned kBoth = kChat | kCompletion;
constexpr double kMostTokens = 2147483647;  // larger than any context
constexpr double kMostText = 1e9;           // the limit of the body's size applies first

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
  throw ApiError{400, "truncation_direction: expected right; texts are truncated at the end",
                 "truncation_direction", "invalid_value"};
}

void put_format(const Json& value, ApiRequest&) {
  if (value == "text") return;
  throw ApiError{400, "format: expected text; markup is not supported", "format", "invalid_value"};
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
     FieldType::text, 0, 1024, "the first capable model",
     "name of the model, as listed by GET /v1/models",
     [](const Json& v, ApiRequest& r) { r.model = v; }},
    {"messages", kChat, FieldType::messages, 1, 4096, "",
     "conversation: a list of messages with role and content",
     [](const Json& v, ApiRequest& r) { r.messages = v; }, true},
    {"prompt", kCompletion, FieldType::prompts, 1, 32, "",
     "a prompt as text or token ids, or an array of prompts",
     [](const Json& v, ApiRequest& r) { r.prompts = prompts(v); }, true},

    {"max_tokens", kBoth, FieldType::integer, -1, kMostTokens, "model",
     "maximum tokens to generate; -1 = as many as fit into the context", put_max_tokens},
    {"max_completion_tokens", kChat, FieldType::integer, -1, kMostTokens, "model",
     "alias of max_tokens", put_max_tokens},
    {"min_tokens", kBoth, FieldType::integer, 0, kMostTokens, "model",
     "do not end before this many tokens",
     [](const Json& v, ApiRequest& r) { r.options.min_tokens = v; }},
    {"n", kBoth, FieldType::integer, 1, 16, "1", "number of independent choices",
     [](const Json& v, ApiRequest& r) { r.options.answers = v; }},
    {"best_of", kCompletion, FieldType::integer, 1, 16, "n", "must equal n",
     [](const Json& v, ApiRequest& r) { r.best_of = v; }},
    {"stop", kBoth, FieldType::stops, 0, 16, "none",
     "stop before any of these texts, of at most 256 bytes each",
     [](const Json& v, ApiRequest& r) { r.options.stop = texts(v); }},
    {"stop_token_ids", kBoth, FieldType::ids, 0, 64, "none", "stop at any of these tokens",
     [](const Json& v, ApiRequest& r) {
       for (const Json& id : v) r.options.stop_ids.push_back(id);
     }},
    {"ignore_eos", kBoth, FieldType::boolean, 0, 0, "false", "continue past the end-of-text token",
     [](const Json& v, ApiRequest& r) { r.options.ignore_end = v; }},

    {"temperature", kBoth, FieldType::number, 0, 100, "model",
     "sampling temperature; higher is more random; 0 = always the most likely token",
     [](const Json& v, ApiRequest& r) { r.options.sampling.temperature = v; }},
    {"top_k", kBoth, FieldType::integer, -1, kMostTokens, "model",
     "sample from the k most likely tokens; 0 or -1 = all",
     [](const Json& v, ApiRequest& r) {
       r.options.sampling.top_k = std::max<int64_t>(0, v.get<int64_t>());
     }},
    {"top_p", kBoth, FieldType::number, 1e-6, 1, "model",
     "sample from the most likely tokens with this total probability; 1 = all",
     [](const Json& v, ApiRequest& r) { r.options.sampling.top_p = v; }},
    {"min_p", kBoth, FieldType::number, 0, 1, "model",
     "drop tokens below this fraction of the highest probability; 0 = off",
     [](const Json& v, ApiRequest& r) { r.options.sampling.min_p = v; }},
    {"typical_p", kBoth, FieldType::number, 1e-6, 1, "model",
     "sample from the tokens of typical surprise with this total probability; 1 = all",
     [](const Json& v, ApiRequest& r) { r.options.sampling.typical_p = v; }},
    {"repetition_penalty", kBoth, FieldType::number, 0.01, 100, "model",
     "above 1: make earlier tokens less likely", put_repetition_penalty},
    {"repeat_penalty", kBoth, FieldType::number, 0.01, 100, "model", "alias of repetition_penalty",
     put_repetition_penalty},
    {"presence_penalty", kBoth, FieldType::number, -2, 2, "0",
     "subtracted from the logits of generated tokens",
     [](const Json& v, ApiRequest& r) { r.options.sampling.presence_penalty = v; }},
    {"frequency_penalty", kBoth, FieldType::number, -2, 2, "0",
     "subtracted from the logits of generated tokens, once per occurrence",
     [](const Json& v, ApiRequest& r) { r.options.sampling.frequency_penalty = v; }},
    {"no_repeat_ngram_size", kBoth, FieldType::integer, 0, 1024, "model",
     "never repeat a sequence of this many tokens; 0 = off",
     [](const Json& v, ApiRequest& r) { r.options.sampling.no_repeat_ngram = v; }},
    {"logit_bias", kBoth, FieldType::biases, -100, 100, "none",
     "added to the logits of tokens, by id; at most 1024 entries", put_biases},
    {"seed", kBoth, FieldType::integer, -9223372036854775808.0, 9223372036854775807.0, "random",
     "random seed; the same seed gives the same text",
     [](const Json& v, ApiRequest& r) {
       r.options.sampling.seed = static_cast<uint64_t>(v.get<int64_t>());
       r.seed_given = true;
     }},

    {"stream", kBoth, FieldType::boolean, 0, 0, "false", "stream the response as it is generated",
     [](const Json& v, ApiRequest& r) { r.stream = v; }},
    {"stream_options", kBoth, FieldType::object, 0, 16, "none",
     "{\"include_usage\": true} ends the stream with the token counts", put_stream_options},
    {"logprobs", kChat, FieldType::boolean, 0, 0, "false",
     "return the log-probability of each token",
     [](const Json& v, ApiRequest& r) { r.logprobs = v; }},
    {"top_logprobs", kChat, FieldType::integer, 0, 20, "0",
     "also return this many most likely alternatives per token; requires logprobs",
     [](const Json& v, ApiRequest& r) { r.options.logprobs = v; }},
    {"logprobs", kCompletion, FieldType::integer, 0, 20, "none",
     "return the log-probability of each token and of this many most likely alternatives",
     [](const Json& v, ApiRequest& r) { r.options.logprobs = v; }},
    {"return_token_ids", kBoth, FieldType::boolean, 0, 0, "false",
     "return the token ids of each choice", [](const Json& v, ApiRequest& r) { r.return_ids = v; }},
    {"echo", kCompletion, FieldType::boolean, 0, 0, "false",
     "return the prompt before the generated text",
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
    {"documents", kChat, FieldType::array, 0, 128, "none", "documents for the chat template",
     [](const Json& v, ApiRequest& r) { r.documents = v; }},
    {"chat_template_kwargs", kChat, FieldType::object, 0, 64, "none",
     "additional variables of the chat template, such as enable_thinking",
     [](const Json& v, ApiRequest& r) { r.template_variables.update(v); }},
    {"reasoning_effort", kChat, FieldType::text, 0, 64, "none", "a variable of the chat template",
     [](const Json& v, ApiRequest& r) { r.template_variables["reasoning_effort"] = v; }},
    {"add_generation_prompt", kChat, FieldType::boolean, 0, 0, "true",
     "end the prompt with the start of the assistant's message",
     [](const Json& v, ApiRequest& r) { r.add_generation_prompt = v; }},

    {"fovea", kBoth, FieldType::object, 0, 16, "none",
     "intermediate results to return for each generated token; the generated tokens keep their "
     "bits",
     [](const Json&, ApiRequest&) {}},
    {"fovea.attention", kBoth, FieldType::object, 0, 16, "none",
     "the tokens with the largest attention weights of one decoder head",
     [](const Json&, ApiRequest& r) { r.trace.attention = AttentionTraceOptions::Attention(); }},
    {"fovea.attention.layer", kBoth, FieldType::integer, 0, 65535, "0", "counted from 0",
     [](const Json& v, ApiRequest& r) { r.trace.attention->layer = v; }},
    {"fovea.attention.head", kBoth, FieldType::integer, 0, 65535, "0", "counted from 0",
     [](const Json& v, ApiRequest& r) { r.trace.attention->head = v; }},
    {"fovea.attention.top_k", kBoth, FieldType::integer, 1, 1024, "8",
     "number of tokens to return, those with the largest weights",
     [](const Json& v, ApiRequest& r) { r.trace.attention->top_k = v; }},
    {"fovea.hidden_states", kBoth, FieldType::object, 0, 16, "none",
     "the residual stream: one vector per token",
     [](const Json&, ApiRequest& r) { r.trace.hidden = 0; }},
    {"fovea.hidden_states.layer", kBoth, FieldType::integer, 0, 65535, "0",
     "before this layer; the number of layers = after the final norm",
     [](const Json& v, ApiRequest& r) { r.trace.hidden = v.get<int64_t>(); }},

    {"input", kEmbeddings, FieldType::prompts, 1, 2048, "",
     "a text or token ids, or an array of them; one vector each",
     [](const Json& v, ApiRequest& r) { r.inputs = prompts(v); }, true},
    {"encoding_format", kEmbeddings, FieldType::text, 0, 16, "float",
     "float, or base64 of 4 bytes per number, little-endian", put_encoding},
    {"inputs", kEmbed, FieldType::prompts, 1, 2048, "",
     "a text or token ids, or an array of them; one vector each",
     [](const Json& v, ApiRequest& r) { r.inputs = prompts(v); }, true},
    {"dimensions", kEmbeddings | kEmbed, FieldType::integer, 1, 65536, "all",
     "keep only the first elements of each vector, for models trained for this",
     [](const Json& v, ApiRequest& r) { r.dimensions = v; }},
    {"normalize", kEmbed, FieldType::boolean, 0, 0, "true", "normalise vectors to unit length",
     [](const Json& v, ApiRequest& r) { r.normalise = v.get<bool>(); }},
    {"prompt_name", kEmbed, FieldType::text, 0, 256, "the model's default",
     "prepend the model's prompt of this name to each text",
     [](const Json& v, ApiRequest& r) { r.prompt_name = v; }},

    {"query", kRerank, FieldType::text, 0, kMostText, "", "the query",
     [](const Json& v, ApiRequest& r) { r.query = v; }, true},
    {"texts", kRerank, FieldType::strings, 1, 2048, "", "texts to score",
     [](const Json& v, ApiRequest& r) { r.texts = v.get<std::vector<std::string>>(); }, true},
    {"raw_scores", kRerank, FieldType::boolean, 0, 0, "false",
     "return the model's raw scores, without its activation",
     [](const Json& v, ApiRequest& r) { r.raw_scores = v; }},
    {"return_text", kRerank, FieldType::boolean, 0, 0, "false", "return each text with its score",
     [](const Json& v, ApiRequest& r) { r.return_text = v; }},
    {"truncate", kEmbed | kRerank, FieldType::boolean, 0, 0, "true",
     "truncate texts with too many tokens; false = refuse them",
     [](const Json& v, ApiRequest& r) { r.truncate = v; }},
    {"truncation_direction", kEmbed | kRerank, FieldType::text, 0, 16, "right",
     "the end to truncate: right", put_direction},

    {"q", kTranslate, FieldType::texts, 1, 256, "", "a text, or an array of texts",
     [](const Json& v, ApiRequest& r) {
       r.texts = texts(v);
       r.many = v.is_array();
     },
     true},
    {"source", kTranslate, FieldType::text, 1, 64, "",
     "source language code, such as de; auto = the language that the model reads",
     [](const Json& v, ApiRequest& r) { r.source = v; }, true},
    {"target", kTranslate, FieldType::text, 1, 64, "", "target language code",
     [](const Json& v, ApiRequest& r) { r.target = v; }, true},
    {"format", kTranslate, FieldType::text, 0, 16, "text", "text", put_format},
    {"alternatives", kTranslate, FieldType::integer, 0, 15, "0",
     "number of alternative translations",
     [](const Json& v, ApiRequest& r) { r.alternatives = v; }},

    {"content", kTokenize, FieldType::text, 0, kMostText, "", "the text",
     [](const Json& v, ApiRequest& r) { r.text = v; }},
    {"prompt", kTokenize, FieldType::text, 0, kMostText, "", "alias of content",
     [](const Json& v, ApiRequest& r) { r.text = v; }},
    {"add_special", kTokenize, FieldType::boolean, 0, 0, "false",
     "add special tokens at the begin and end, such as [CLS]",
     [](const Json& v, ApiRequest& r) { r.add_special = v; }},
    {"parse_special", kTokenize, FieldType::boolean, 0, 0, "true",
     "read names of special tokens in the text as these tokens",
     [](const Json& v, ApiRequest& r) { r.parse_special = v; }},
    {"with_pieces", kTokenize, FieldType::boolean, 0, 0, "false",
     "return each token's text with its id",
     [](const Json& v, ApiRequest& r) { r.with_pieces = v; }},
    {"tokens", kDetokenize, FieldType::ids, 0, 1e6, "", "the token ids",
     [](const Json& v, ApiRequest& r) { r.ids = v.get<std::vector<int32_t>>(); }, true},
    {"skip_special_tokens", kDetokenize, FieldType::boolean, 0, 0, "false", "skip special tokens",
     [](const Json& v, ApiRequest& r) { r.skip_special = v; }},
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
