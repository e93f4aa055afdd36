#include "serve/fields.h"

#include <algorithm>

#include "serve/described_field.h"

namespace fovea::serve {
namespace {

constexpr unsigned kBoth = kChat | kCompletion;
constexpr double kMostTokens = 2147483647;  // larger than any context
constexpr double kMostChoices = 16;         // each choice takes additional memory
constexpr double kMostLogprobs = 20;        // as in OpenAI's API
constexpr double kMostText = 1e9;           // the limit of the body's size applies first

std::vector<std::string> texts(const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

void put_max_tokens(const Json& value, ApiRequest& request) {
  request.options.max_tokens = value.get<int64_t>();
  request.max_tokens_given = request.options.max_tokens >= 0;
}

void put_top_k(const Json& value, ApiRequest& request) {
  request.options.sampling.top_k = std::max<int64_t>(0, value.get<int64_t>());  // -1 as in vLLM
}

// 0, as clients send for the most likely token, is the smallest share that the library takes.
void put_top_p(const Json& value, ApiRequest& request) {
  constexpr float kLeast = 1e-6f;
  request.options.sampling.top_p = std::max(kLeast, value.get<float>());
}

void put_seed(const Json& value, ApiRequest& request) {
  request.options.sampling.seed = static_cast<uint64_t>(value.get<int64_t>());
  request.seed_given = true;
}

void put_truncate(const Json& value, ApiRequest& request) {
  request.embedding.truncate = request.reranking.truncate = request.classification.truncate =
      value.get<bool>();
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

void put_functions(const Json& value, ApiRequest& request) {
  request.functions = true;
  request.tools = Json::array();
  for (const Json& function : value)
    request.tools.push_back({{"type", "function"}, {"function", function}});
}

void put_function_call(const Json& value, ApiRequest& request) {
  if (value.is_object() && value.contains("name")) {
    request.tool_choice = {{"type", "function"}, {"function", {{"name", value["name"]}}}};
    return;
  }
  if (value != "none" && value != "auto") {
    throw ApiError{400, "function_call: expected none, auto or {\"name\": ...}", "function_call",
                   "invalid_value"};
  }
  request.tool_choice = value;
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

// Returns `field` with other bounds. `note` is appended to its help.
Field bounded(double least, double most, Field field, const char* note = "") {
  field.least = least;
  field.most = most;
  field.help += note;
  return field;
}

Field named(std::string name, unsigned of, std::string help, Field field) {
  field.name = std::move(name);
  field.of = of;
  field.help = std::move(help);
  return field;
}

Field with(Field field, decltype(Field::put) put) {
  field.put = std::move(put);
  return field;
}

Field option(std::string name, unsigned of, const std::string& option, std::string initial = {}) {
  return described(std::move(name), of, &ApiRequest::options, option, std::move(initial));
}

Field vector_option(std::string name, unsigned of, const std::string& option,
                    std::string initial = {}) {
  return described(std::move(name), of, &ApiRequest::embedding, option, std::move(initial));
}

std::vector<Field> prompt_fields() {
  return {
      {"model", ~static_cast<unsigned>(kJob), FieldType::text, 0, 1024, "the first capable model",
       "name of the model, as listed by GET /v1/models",
       [](const Json& v, ApiRequest& r) { r.model = v; }},
      {"messages", kChat, FieldType::messages, 1, 4096, "",
       "conversation: a list of messages with role and content",
       [](const Json& v, ApiRequest& r) { r.messages = v; }, true},
      {"prompt", kCompletion, FieldType::prompts, 1, 32, "",
       "a prompt as text or token ids, or an array of prompts",
       [](const Json& v, ApiRequest& r) { r.prompts = prompts(v); }, true},
  };
}

std::vector<Field> length_fields() {
  return {
      with(option("max_tokens", kBoth, "max_tokens", "model"), put_max_tokens),
      with(named("max_completion_tokens", kChat, "alias of max_tokens",
                 option("max_tokens", kChat, "max_tokens", "model")),
           put_max_tokens),
      with(named("n_predict", kBoth, "alias of max_tokens, as in llama.cpp's API",
                 option("max_tokens", kBoth, "max_tokens", "model")),
           put_max_tokens),
      with(named("max_new_tokens", kBoth, "alias of max_tokens",
                 option("max_tokens", kBoth, "max_tokens", "model")),
           put_max_tokens),
      option("min_tokens", kBoth, "min_tokens", "model"),
      named("n", kBoth, "number of independent choices",
            bounded(1, kMostChoices, option("n", kBoth, "answers"))),
      {"best_of", kCompletion, FieldType::integer, 1, kMostChoices, "n", "must equal n",
       [](const Json& v, ApiRequest& r) { r.best_of = v; }},
      // The server searches for each string after every token.
      bounded(0, 16, option("stop", kBoth, "stop", "none"), ", of at most 256 bytes each"),
      bounded(0, 64, option("stop_token_ids", kBoth, "stop_ids", "none")),
      bounded(0, 64, option("bad_words", kBoth, "banned", "none"), ", of at most 256 bytes each"),
      option("ignore_eos", kBoth, "ignore_end"),
  };
}

std::vector<Field> sampling_fields() {
  return {
      option("temperature", kBoth, "temperature", "model"),
      with(bounded(-1, kMostTokens, option("top_k", kBoth, "top_k", "model"), ", -1 = all"),
           put_top_k),
      with(bounded(0, 1, option("top_p", kBoth, "top_p", "model")), put_top_p),
      option("min_p", kBoth, "min_p", "model"),
      option("typical_p", kBoth, "typical_p", "model"),
      option("top_n_sigma", kBoth, "top_n_sigma", "model"),
      option("xtc_probability", kBoth, "xtc_probability", "model"),
      option("xtc_threshold", kBoth, "xtc_threshold", "model"),
      bounded(0, 256, option("samplers", kBoth, "samplers", "model")),
      option("mirostat", kBoth, "mirostat", "model"),
      option("mirostat_tau", kBoth, "mirostat_tau", "model"),
      option("mirostat_eta", kBoth, "mirostat_eta", "model"),
      option("dry_multiplier", kBoth, "dry_multiplier", "model"),
      option("dry_base", kBoth, "dry_base", "model"),
      option("dry_allowed_length", kBoth, "dry_allowed_length", "model"),
      option("dry_penalty_last_n", kBoth, "dry_penalty_last_n", "model"),
      bounded(0, 16, option("dry_sequence_breakers", kBoth, "dry_sequence_breakers", "model"),
              ", of at most 256 bytes each"),
      option("repetition_penalty", kBoth, "repetition_penalty", "model"),
      named("repeat_penalty", kBoth, "alias of repetition_penalty",
            option("repetition_penalty", kBoth, "repetition_penalty", "model")),
      // The bounds of OpenAI's API.
      bounded(-2, 2, option("presence_penalty", kBoth, "presence_penalty")),
      bounded(-2, 2, option("frequency_penalty", kBoth, "frequency_penalty")),
      option("no_repeat_ngram_size", kBoth, "no_repeat_ngram", "model"),
      {"logit_bias", kBoth, FieldType::biases, -100, 100, "none",
       "added to the logits of tokens, by id; at most 1024 entries", put_biases},
      with(option("seed", kBoth, "seed", "random"), put_seed),
      option("guesses", kBoth, "guesses", "model"),
  };
}

std::vector<Field> result_fields() {
  return {
      {"stream", kBoth, FieldType::boolean, 0, 0, "false", "stream the response as it is generated",
       [](const Json& v, ApiRequest& r) { r.stream = v; }},
      {"stream_options", kBoth, FieldType::object, 0, 16, "none",
       "{\"include_usage\": true} ends the stream with the token counts", put_stream_options},
      {"logprobs", kChat, FieldType::boolean, 0, 0, "false",
       "return the log-probability of each token",
       [](const Json& v, ApiRequest& r) { r.logprobs = v; }},
      named("top_logprobs", kChat,
            "also return this many most likely alternatives per token; requires logprobs",
            bounded(0, kMostLogprobs, option("top_logprobs", kChat, "logprobs", "0"))),
      bounded(-1, kMostLogprobs, option("logprobs", kCompletion, "logprobs", "none")),
      {"return_token_ids", kBoth, FieldType::boolean, 0, 0, "false",
       "return the token ids of each choice",
       [](const Json& v, ApiRequest& r) { r.return_ids = v; }},
      {"echo", kCompletion, FieldType::boolean, 0, 0, "false",
       "return the prompt before the generated text; with logprobs, also its log-probabilities",
       [](const Json& v, ApiRequest& r) { r.echo = v; }},
      {"suffix", kCompletion, FieldType::text, 0, kMostText, "none",
       "the text after the generated one, for models whose tokenizer has tokens for it",
       [](const Json& v, ApiRequest& r) { r.suffix = v; }},
  };
}

std::vector<Field> chat_fields() {
  return {
      {"tools", kChat, FieldType::array, 0, 128, "none", "functions that the model may call",
       [](const Json& v, ApiRequest& r) { r.tools = v; }},
      {"tool_choice", kChat, FieldType::any, 0, 0, "auto",
       "none, auto, required, or {\"type\": \"function\", \"function\": {\"name\": ...}}",
       [](const Json& v, ApiRequest& r) { r.tool_choice = v; }},
      {"functions", kChat, FieldType::array, 0, 128, "none",
       "older form of tools: the functions alone; the message has one function_call",
       put_functions},
      {"function_call", kChat, FieldType::any, 0, 0, "auto",
       "older form of tool_choice: none, auto or {\"name\": ...}", put_function_call},
      {"documents", kChat, FieldType::array, 0, 128, "none", "documents for the chat template",
       [](const Json& v, ApiRequest& r) { r.documents = v; }},
      {"chat_template_kwargs", kChat, FieldType::object, 0, 64, "none",
       "additional variables of the chat template, such as enable_thinking",
       [](const Json& v, ApiRequest& r) { r.template_variables.update(v); }},
      {"reasoning_effort", kChat, FieldType::text, 0, 64, "none", "a variable of the chat template",
       [](const Json& v, ApiRequest& r) { r.template_variables["reasoning_effort"] = v; }},
      {"add_generation_prompt", kChat, FieldType::boolean, 0, 0, "true",
       "end the prompt with the start of the assistant's message",
       [](const Json& v, ApiRequest& r) { r.ending.add_generation_prompt = v; }},
      {"continue_final_message", kChat, FieldType::boolean, 0, 0, "false",
       "continue the last message, of the assistant; requires add_generation_prompt false",
       [](const Json& v, ApiRequest& r) { r.ending.continue_final = v; }},
  };
}

std::vector<Field> trace_fields() {
  return {
      {"fovea", kBoth, FieldType::object, 0, 16, "none",
       "intermediate results to return for each generated token; this does not change the "
       "generated tokens",
       [](const Json&, ApiRequest&) {}},
      {"fovea.attention", kBoth, FieldType::object, 0, 16, "none",
       "the tokens with the largest attention weights of one decoder head",
       [](const Json&, ApiRequest& r) {
         r.trace.attention = infer::AttentionTraceOptions::Attention();
       }},
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
       "the state before this layer, counted from 0; the number of layers = after the final norm",
       [](const Json& v, ApiRequest& r) { r.trace.hidden = v.get<int64_t>(); }},
  };
}

std::vector<Field> vector_fields() {
  return {
      {"input", kEmbeddings, FieldType::prompts, 1, 2048, "",
       "a text or token ids, or an array of them; one vector each",
       [](const Json& v, ApiRequest& r) { r.inputs = prompts(v); }, true},
      {"encoding_format", kEmbeddings, FieldType::text, 0, 16, "float",
       "float, or base64 of 4 bytes per number, little-endian", put_encoding},
      {"inputs", kEmbed | kSparse | kAllTokens, FieldType::prompts, 1, 2048, "",
       "a text or token ids, or an array of them; one result each",
       [](const Json& v, ApiRequest& r) { r.inputs = prompts(v); }, true},
      vector_option("dimensions", kEmbeddings | kEmbed, "dimensions", "all"),
      vector_option("normalize", kEmbed, "normalise", "true"),
      bounded(0, 256,
              vector_option("prompt_name", kEmbed | kSparse | kAllTokens, "prompt_name",
                            "the model's default")),
      {"query", kRerank, FieldType::text, 0, kMostText, "", "the query",
       [](const Json& v, ApiRequest& r) { r.query = v; }, true},
      {"texts", kRerank, FieldType::strings, 1, 2048, "", "texts to score",
       [](const Json& v, ApiRequest& r) { r.texts = v.get<std::vector<std::string>>(); }, true},
      described("raw_scores", kRerank, &ApiRequest::reranking, "raw", ""),
      {"return_text", kRerank, FieldType::boolean, 0, 0, "false", "return each text with its score",
       [](const Json& v, ApiRequest& r) { r.return_text = v; }},
      with(
          vector_option("truncate", kEmbed | kRerank | kPredict | kSparse | kAllTokens, "truncate"),
          put_truncate),
      {"truncation_direction", kEmbed | kRerank | kPredict | kSparse | kAllTokens, FieldType::text,
       0, 16, "right", "the side to truncate; only right is supported", put_direction},
  };
}

std::vector<Field> text_fields() {
  return {
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
      {"format", kTranslate, FieldType::text, 0, 16, "text", "only text is supported", put_format},
      {"alternatives", kTranslate, FieldType::integer, 0, 15, "0",
       "number of alternative translations",
       [](const Json& v, ApiRequest& r) { r.alternatives = v; }},
      {"content", kTokenize, FieldType::text, 0, kMostText, "", "the text",
       [](const Json& v, ApiRequest& r) { r.text = v; }},
      {"prompt", kTokenize, FieldType::text, 0, kMostText, "", "alias of content",
       [](const Json& v, ApiRequest& r) { r.text = v; }},
      {"inputs", kTokenize, FieldType::texts, 1, 2048, "",
       "a text, or an array of texts; the response has the format of text-embeddings-inference",
       [](const Json& v, ApiRequest& r) { r.text_list = texts(v); }},
      {"add_special_tokens", kTokenize, FieldType::boolean, 0, 0, "true",
       "add special tokens; of inputs", [](const Json& v, ApiRequest& r) { r.with_special = v; }},
      {"add_special", kTokenize, FieldType::boolean, 0, 0, "false",
       "add special tokens at the beginning and the end, such as [CLS]",
       [](const Json& v, ApiRequest& r) { r.add_special = v; }},
      {"parse_special", kTokenize | kCompletion, FieldType::boolean, 0, 0,
       "true; of completions false", "parse names of special tokens in the text as special tokens",
       [](const Json& v, ApiRequest& r) { r.parse_special = v; }},
      {"with_pieces", kTokenize, FieldType::boolean, 0, 0, "false",
       "return each token's text with its id",
       [](const Json& v, ApiRequest& r) { r.with_pieces = v; }},
      {"tokens", kDetokenize, FieldType::ids, 0, 1e6, "", "the token ids",
       [](const Json& v, ApiRequest& r) { r.ids = v.get<std::vector<int32_t>>(); }, true},
      {"skip_special_tokens", kDetokenize, FieldType::boolean, 0, 0, "false", "skip special tokens",
       [](const Json& v, ApiRequest& r) { r.skip_special = v; }},
  };
}

const char* name_of(FieldType type) {
  static const char* const names[] = {"boolean",
                                      "integer",
                                      "number",
                                      "text",
                                      "stops",
                                      "strings",
                                      "texts",
                                      "ids",
                                      "prompts",
                                      "biases",
                                      "messages",
                                      "array",
                                      "object",
                                      "automatic_integer",
                                      "automatic_number",
                                      "any"};
  return names[static_cast<int>(type)];
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> fields;
    for (const auto& group : {prompt_fields(), length_fields(), sampling_fields(), result_fields(),
                              guide_fields(), chat_fields(), trace_fields(), vector_fields(),
                              classification_fields(), text_fields(), tuning_fields()})
      fields.insert(fields.end(), group.begin(), group.end());
    return fields;
  }();
  return all;
}

const std::vector<FieldsOf>& routes_with_fields() {
  static const std::vector<FieldsOf> routes = {
      {kChat, "/v1/chat/completions"}, {kCompletion, "/v1/completions"}, {kTokenize, "/tokenize"},
      {kDetokenize, "/detokenize"},    {kEmbeddings, "/v1/embeddings"},  {kEmbed, "/embed"},
      {kSparse, "/embed_sparse"},      {kAllTokens, "/embed_all"},       {kRerank, "/rerank"},
      {kClassify, "/v1/classify"},     {kPredict, "/predict"},           {kScore, "/v1/score"},
      {kRanks, "/v1/rerank"},          {kSimilarity, "/similarity"},     {kTranslate, "/translate"},
      {kJob, "/v1/fine_tuning/jobs"}};
  return routes;
}

std::string fields_json() {
  Json all = Json::array();
  for (const Field& field : fields()) {
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
