// The fields of requests in Ollama's format.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/protocols/ollama_messages.h"
#include "serve/request/described_field.h"
#include "serve/request/field_values.h"
#include "serve/request/foreign_fields.h"

namespace fovea::serve {
namespace {

constexpr double kMostNumber = 2147483647;  // larger than any context

void put_num_predict(const Json& value, GenerationRequest& request) {
  const auto tokens = value.get<int64_t>();
  request.max_tokens_given = tokens > 0;
  request.options.max_tokens = tokens > 0 ? tokens : -1;
}

void put_ollama_top_k(const Json& value, GenerationRequest& request) {
  request.options.sampling.top_k = std::max<int64_t>(0, value.get<int64_t>());
}

// The library takes no share of 0.
void put_ollama_top_p(const Json& value, GenerationRequest& request) {
  constexpr float kLeast = 1e-6f;
  request.options.sampling.top_p = std::max(kLeast, value.get<float>());
}

void put_ollama_stream(const Json& value, GenerationRequest& request) { request.stream = value; }

void put_think(const Json& value, OllamaRequest& request) {
  const bool level = value == "low" || value == "medium" || value == "high" || value == "max";
  if (!value.is_boolean() && !level && !is_neutral(value))
    refuse_value("think", "true, false, low, medium, high or max");
  if (!is_neutral(value) || value == false) request.think = value;
}

void put_ollama_messages(const Json& value, OllamaChatRequest& request) {
  if (value.empty()) return;
  request.messages = openai_messages(value);
  const FieldInfo field{"messages", FieldType::messages, 1, 4096};
  checked_value({{"messages", request.messages}}, field, 0);
}

// Returns the seconds of a duration such as "1h30m" or "-1"; empty: it is not one.
std::optional<double> seconds_of(std::string_view text) {
  static const std::vector<std::pair<std::string_view, double>> kUnits = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  double seconds = 0;
  bool plain = false;  // a number without a unit, which is the only one
  for (bool first = true; first || !text.empty(); first = false) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (plain || error != std::errc() || !(number >= 0)) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
    const auto known = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
    plain = unit.empty() && first;
    if (!plain && known == kUnits.end()) return std::nullopt;
    seconds += number * (plain ? 1 : known->second);
    text.remove_prefix(unit.size());
  }
  return negative ? -seconds : seconds;
}

template <class Request>
void put_keep_alive(const Json& value, Request& request) {
  if (value.is_number()) request.keep_alive = value.get<double>();
  if (value.is_string()) request.keep_alive = seconds_of(value.get<std::string>());
  constexpr double kMostSeconds = 1e9;
  if (!request.keep_alive || !(std::abs(*request.keep_alive) <= kMostSeconds))
    refuse_value("keep_alive", "seconds, or a duration such as \"5m\"");
}

Field<GenerationRequest> sampling_option(const char* name, const std::string& of) {
  return described(std::string("options.") + name, &GenerationRequest::options, of, "model");
}

Field<GenerationRequest> storing(Field<GenerationRequest> field,
                                 Field<GenerationRequest>::Put put) {
  field.put = std::move(put);
  return field;
}

// The options of Ollama's runner, which say how a model is held and computed.
template <class Request>
Fields<Request> runner_options() {
  Fields<Request> all;
  for (const auto& [name, help] : {std::pair{"num_keep", "tokens kept when the context is full"},
                                   {"num_batch", "tokens of a pass"},
                                   {"num_gpu", "layers on a GPU"},
                                   {"main_gpu", "the first GPU"},
                                   {"num_thread", "threads"},
                                   {"numa", "memory of several processors"},
                                   {"low_vram", "less memory of a GPU"},
                                   {"f16_kv", "precision of keys and values"},
                                   {"logits_all", "logits of all tokens"},
                                   {"vocab_only", "only the vocabulary"},
                                   {"use_mmap", "mapped files"},
                                   {"use_mlock", "locked memory"},
                                   {"embedding_only", "only vectors"},
                                   {"penalize_newline", "penalties of line breaks"}})
    all.push_back(ignored_field<Request>(std::string("options.") + name, help));
  return all;
}

Fields<GenerationRequest> sampling_options() {
  return {
      {{"options", FieldType::object, 0, 64, "none", "how the text is generated"},
       [](const Json&, GenerationRequest&) {}},
      storing({{"options.num_predict", FieldType::integer, -2, kMostNumber, "model",
                "the maximum number of tokens; 0 or less = as many as the context has room for"},
               {}},
              put_num_predict),
      sampling_option("temperature", "temperature"),
      storing(bounded(-1, kMostNumber, sampling_option("top_k", "top_k"), ", -1 = all"),
              put_ollama_top_k),
      storing(bounded(0, 1, sampling_option("top_p", "top_p")), put_ollama_top_p),
      sampling_option("min_p", "min_p"),
      sampling_option("typical_p", "typical_p"),
      storing(sampling_option("seed", "seed"), put_seed_or_random),
      bounded(0, 16, sampling_option("stop", "stop"), ", of at most 256 bytes each"),
      sampling_option("repeat_penalty", "repetition_penalty"),
      sampling_option("presence_penalty", "presence_penalty"),
      sampling_option("frequency_penalty", "frequency_penalty"),
      penalty_window_field("options.repeat_last_n"),
      sampling_option("mirostat", "mirostat"),
      sampling_option("mirostat_tau", "mirostat_tau"),
      sampling_option("mirostat_eta", "mirostat_eta"),
  };
}

Field<GenerationRequest> format_field() {
  const Fields<GenerationRequest> all = guide_fields();
  return *std::find_if(all.begin(), all.end(),
                       [](const auto& field) { return field.info.name == "format"; });
}

// Those of chats and of generated texts.
Fields<OllamaRequest> ollama_fields() {
  const auto shortened = [](const Json& value, OllamaRequest& request) {
    if (value == true)
      request.warnings.emplace_back(
          "truncate and shift are ignored: a prompt that does not fit is refused");
  };
  return joined<OllamaRequest>(
      joined<OllamaRequest>(
          {model_field(),
           {{"stream", FieldType::boolean, 0, 0, "true", "stream the response as it is generated"},
            put_ollama_stream},
           format_field(),
           {{"think", FieldType::any, 0, 0, "as the chat template does",
             "true or false, or low, medium, high or max: variables enable_thinking and "
             "reasoning_effort of the chat template"},
            put_think},
           {{"keep_alive", FieldType::any, 0, 0, "none",
             "the model is unloaded after this time without requests: seconds, or a duration such "
             "as "
             "5m; negative = never"},
            put_keep_alive<OllamaRequest>},
           {{"truncate", FieldType::boolean, 0, 0, "false",
             "ignored: a prompt that does not fit is refused"},
            shortened},
           {{"shift", FieldType::boolean, 0, 0, "false",
             "ignored: a text ends when the context is full"},
            shortened},
           {{"logprobs", FieldType::boolean, 0, 0, "false",
             "return the log-probability of each token"},
            [](const Json& v, OllamaRequest& r) { r.logprobs = v; }},
           bounded(0, 20, described("top_logprobs", &GenerationRequest::options, "logprobs", "0"))},
          sampling_options(), {}),
      runner_options<OllamaRequest>(),
      {{{"options.num_ctx", FieldType::integer, 1, kMostNumber, "the model's context",
         "at most the context of the model, which is used in any case"},
        [](const Json& v, OllamaRequest& r) { r.context = v; }}});
}

Field<OllamaEmbedRequest> embed_option(const char* name, const char* initial) {
  return described(name, &VectorRequest::options, name, initial);
}

Fields<OllamaEmbedRequest> ollama_vector_fields() {
  return joined<OllamaEmbedRequest>(
      {model_field(),
       {{"options", FieldType::object, 0, 64, "none", "those of the model's runner"},
        [](const Json&, OllamaEmbedRequest&) {}},
       {{"keep_alive", FieldType::any, 0, 0, "none",
         "the model is unloaded after this time without requests: seconds, or a duration such as "
         "5m; negative = never"},
        put_keep_alive<OllamaEmbedRequest>}},
      runner_options<OllamaEmbedRequest>(),
      {ignored_field<OllamaEmbedRequest>("options.num_ctx", "the context")});
}

}  // namespace

template <>
const Fields<OllamaChatRequest>& fields_of() {
  static const Fields<OllamaChatRequest> all = joined<OllamaChatRequest>(
      {{{"messages", FieldType::array, 0, 4096, "none",
         "conversation: a list of messages with role and content; none = only load the model"},
        put_ollama_messages}},
      ollama_fields(),
      {{{"tools", FieldType::array, 0, 128, "none", "functions that the model may call"},
        [](const Json& v, OllamaChatRequest& r) { r.tools = v; }}});
  return all;
}

template <>
const Fields<OllamaGenerateRequest>& fields_of() {
  static const Fields<OllamaGenerateRequest> all = joined<OllamaGenerateRequest>(
      {{{"prompt", FieldType::text, 0, kMostText, "none",
         "the message of the user; none = only load the model"},
        [](const Json& v, OllamaGenerateRequest& r) { r.prompt = v; }}},
      ollama_fields(),
      {{{"system", FieldType::text, 0, kMostText, "none", "the system message"},
        [](const Json& v, OllamaGenerateRequest& r) { r.system = v; }},
       {{"suffix", FieldType::text, 0, kMostText, "none",
         "the text after the generated one, for models whose tokenizer has tokens for it"},
        [](const Json& v, OllamaGenerateRequest& r) { r.suffix = v; }},
       {{"images", FieldType::array, 0, 64, "none", "images in base64"},
        [](const Json& v, OllamaGenerateRequest& r) { r.images = v; }},
       {{"raw", FieldType::boolean, 0, 0, "false",
         "continue the prompt as it is, without the chat template"},
        [](const Json& v, OllamaGenerateRequest& r) { r.raw = v; }},
       refused_field<OllamaGenerateRequest>(
           "template", "a template of the prompt",
           "the chat template is that of the model, or of --chat-template"),
       refused_field<OllamaGenerateRequest>("context", "the tokens of an earlier response",
                                            "send the conversation to /api/chat")});
  return all;
}

template <>
const Fields<OllamaEmbedRequest>& fields_of() {
  static const Fields<OllamaEmbedRequest> all = joined<OllamaEmbedRequest>(
      {{{"input", FieldType::texts, 1, kMostInputs, "",
         "a text, or an array of texts; one vector each", true},
        [](const Json& v, OllamaEmbedRequest& r) {
          for (std::string& text : texts_of(v)) r.inputs.emplace_back(std::move(text));
        }}},
      ollama_vector_fields(),
      {embed_option("truncate", "true"), embed_option("dimensions", "all")});
  return all;
}

template <>
const Fields<OllamaEmbeddingsRequest>& fields_of() {
  static const Fields<OllamaEmbeddingsRequest> all = joined<OllamaEmbeddingsRequest>(
      {{{"prompt", FieldType::text, 1, kMostText, "", "the text", true},
        [](const Json& v, OllamaEmbeddingsRequest& r) {
          r.inputs.emplace_back(v.get<std::string>());
        }}},
      ollama_vector_fields(), {});
  return all;
}

}  // namespace fovea::serve
