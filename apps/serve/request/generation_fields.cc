// The fields of chats and completions.

#include <algorithm>

#include "serve/request/described_field.h"
#include "serve/request/field_values.h"

namespace fovea::serve {
namespace {

using Generation = GenerationRequest;
using Chat = ChatRequest;
using Completion = CompletionRequest;

constexpr double kMostTokens = 2147483647;  // larger than any context
constexpr double kMostChoices = 16;         // each choice takes additional memory
constexpr double kMostLogprobs = 20;        // as in OpenAI's API

void put_max_tokens(const Json& value, Generation& request) {
  request.options.max_tokens = value.get<int64_t>();
  request.max_tokens_given = request.options.max_tokens >= 0;
}

void put_top_k(const Json& value, Generation& request) {
  request.options.sampling.top_k = std::max<int64_t>(0, value.get<int64_t>());  // -1 as in vLLM
}

// 0, as clients send for the most likely token, is the smallest share that the library takes.
void put_top_p(const Json& value, Generation& request) {
  constexpr float kLeast = 1e-6f;
  request.options.sampling.top_p = std::max(kLeast, value.get<float>());
}

void put_seed(const Json& value, Generation& request) {
  request.options.sampling.seed = static_cast<uint64_t>(value.get<int64_t>());
  request.seed_given = true;
}

void put_biases(const Json& value, Generation& request) {
  for (const auto& [id, bias] : value.items()) {
    request.options.sampling.logit_bias.emplace_back(std::stoi(id), bias.get<float>());
  }
}

void put_functions(const Json& value, Chat& request) {
  request.functions = true;
  request.tools = Json::array();
  for (const Json& function : value)
    request.tools.push_back({{"type", "function"}, {"function", function}});
}

void put_function_call(const Json& value, Chat& request) {
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

void put_reasoning_format(const Json& value, Chat& request) {
  if (value != "auto" && value != "deepseek" && value != "none")
    throw ApiError{400, "reasoning_format: expected auto, deepseek or none", "reasoning_format",
                   "invalid_value"};
  request.split_reasoning = value != "none";
}

Field<Chat> budget_field(const char* name, const char* help) {
  return {{name, FieldType::integer, -1, kMostTokens, "-1", help},
          [](const Json& v, Chat& r) { r.reasoning_tokens = v; }};
}

void put_stream_options(const Json& value, Generation& request) {
  const auto found = value.find("include_usage");
  if (found == value.end() || found->is_null()) return;
  if (!found->is_boolean()) {
    throw ApiError{400, "stream_options.include_usage: expected true or false",
                   "stream_options.include_usage", "invalid_type"};
  }
  request.include_usage = found->get<bool>();
}

// Returns `field` with another name and help.
Field<Generation> renamed(std::string name, std::string help, Field<Generation> field) {
  field.info.name = std::move(name);
  field.info.help = std::move(help);
  return field;
}

Field<Generation> with(Field<Generation> field, Field<Generation>::Put put) {
  field.put = std::move(put);
  return field;
}

Field<Generation> option(std::string name, const std::string& option, std::string initial = {}) {
  return described(std::move(name), &Generation::options, option, std::move(initial));
}

Fields<Generation> length_fields() {
  return {
      with(option("max_tokens", "max_tokens", "model"), put_max_tokens),
      with(renamed("n_predict", "alias of max_tokens, as in llama.cpp's API",
                   option("max_tokens", "max_tokens", "model")),
           put_max_tokens),
      with(renamed("max_new_tokens", "alias of max_tokens",
                   option("max_tokens", "max_tokens", "model")),
           put_max_tokens),
      option("min_tokens", "min_tokens", "model"),
      renamed("n", "number of independent choices",
              bounded(1, kMostChoices, option("n", "generations"))),
      // The server searches for each string after every token.
      bounded(0, 16, option("stop", "stop", "none"), ", of at most 256 bytes each"),
      bounded(0, 64, option("stop_token_ids", "stop_ids", "none")),
      bounded(0, 64, option("bad_words", "banned", "none"), ", of at most 256 bytes each"),
      option("ignore_eos", "ignore_end"),
  };
}

Fields<Generation> sampling_fields() {
  return {
      option("temperature", "temperature", "model"),
      with(bounded(-1, kMostTokens, option("top_k", "top_k", "model"), ", -1 = all"), put_top_k),
      with(bounded(0, 1, option("top_p", "top_p", "model")), put_top_p),
      option("min_p", "min_p", "model"),
      option("typical_p", "typical_p", "model"),
      option("top_n_sigma", "top_n_sigma", "model"),
      option("xtc_probability", "xtc_probability", "model"),
      option("xtc_threshold", "xtc_threshold", "model"),
      bounded(0, 256, option("samplers", "samplers", "model")),
      option("mirostat", "mirostat", "model"),
      option("mirostat_tau", "mirostat_tau", "model"),
      option("mirostat_eta", "mirostat_eta", "model"),
      option("dry_multiplier", "dry_multiplier", "model"),
      option("dry_base", "dry_base", "model"),
      option("dry_allowed_length", "dry_allowed_length", "model"),
      option("dry_penalty_last_n", "dry_penalty_last_n", "model"),
      bounded(0, 16, option("dry_sequence_breakers", "dry_sequence_breakers", "model"),
              ", of at most 256 bytes each"),
      option("repetition_penalty", "repetition_penalty", "model"),
      renamed("repeat_penalty", "alias of repetition_penalty",
              option("repetition_penalty", "repetition_penalty", "model")),
      // The bounds of OpenAI's API.
      bounded(-2, 2, option("presence_penalty", "presence_penalty")),
      bounded(-2, 2, option("frequency_penalty", "frequency_penalty")),
      option("no_repeat_ngram_size", "no_repeat_ngram", "model"),
      {{"logit_bias", FieldType::biases, -100, 100, "none",
        "added to the logits of tokens, by id; at most 1024 entries"},
       put_biases},
      with(option("seed", "seed", "random"), put_seed),
      option("speculative_tokens", "speculative_tokens", "model"),
  };
}

Fields<Generation> result_fields() {
  return {
      {{"stream", FieldType::boolean, 0, 0, "false", "stream the response as it is generated"},
       [](const Json& v, Generation& r) { r.stream = v; }},
      {{"stream_options", FieldType::object, 0, 16, "none",
        "{\"include_usage\": true} ends the stream with the token counts"},
       put_stream_options},
      {{"return_token_ids", FieldType::boolean, 0, 0, "false",
        "return the token ids of each choice"},
       [](const Json& v, Generation& r) { r.return_ids = v; }},
      {{"prompt_cache_key", FieldType::any, 0, 0, "none",
        "requests with the same key go to the same one of several servers; see docs/deploy.md"},
       [](const Json&, Generation&) {}},
  };
}

Fields<Generation> trace_fields() {
  return {
      {{"fovea", FieldType::object, 0, 16, "none",
        "intermediate results to return for each generated token; this does not change the "
        "generated tokens"},
       [](const Json&, Generation&) {}},
      {{"fovea.attention", FieldType::object, 0, 16, "none",
        "the tokens with the largest attention weights of one decoder head"},
       [](const Json&, Generation& r) {
         r.trace.attention = infer::AttentionTraceOptions::Attention();
       }},
      {{"fovea.attention.layer", FieldType::integer, 0, 65535, "0", "counted from 0"},
       [](const Json& v, Generation& r) { r.trace.attention->layer = v; }},
      {{"fovea.attention.head", FieldType::integer, 0, 65535, "0", "counted from 0"},
       [](const Json& v, Generation& r) { r.trace.attention->head = v; }},
      {{"fovea.attention.top_k", FieldType::integer, 1, 1024, "8",
        "number of tokens to return, those with the largest weights"},
       [](const Json& v, Generation& r) { r.trace.attention->top_k = v; }},
      {{"fovea.hidden_states", FieldType::object, 0, 16, "none",
        "the residual stream: one vector per token"},
       [](const Json&, Generation& r) { r.trace.hidden = 0; }},
      {{"fovea.hidden_states.layer", FieldType::integer, 0, 65535, "0",
        "the state before this layer, counted from 0; the number of layers = after the final norm"},
       [](const Json& v, Generation& r) { r.trace.hidden = v.get<int64_t>(); }},
  };
}

Fields<Generation> generation_fields() {
  Fields<Generation> all = length_fields();
  for (const auto& group : {sampling_fields(), result_fields(), guide_fields(), trace_fields()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace

template <>
const Fields<Chat>& fields_of() {
  static const Fields<Chat> all = joined<Chat>(
      {model_field(),
       {{"messages", FieldType::messages, 1, 4096, "",
         "conversation: a list of messages with role and content", true},
        [](const Json& v, Chat& r) { r.messages = v; }}},
      generation_fields(),
      {
          with(renamed("max_completion_tokens", "alias of max_tokens",
                       option("max_tokens", "max_tokens", "model")),
               put_max_tokens),
          {{"logprobs", FieldType::boolean, 0, 0, "false",
            "return the log-probability of each token"},
           [](const Json& v, Chat& r) { r.logprobs = v; }},
          renamed("top_logprobs",
                  "also return this many most likely alternatives per token; requires logprobs",
                  bounded(0, kMostLogprobs, option("top_logprobs", "logprobs", "0"))),
          {{"tools", FieldType::array, 0, 128, "none",
            "functions and custom tools that the model may call"},
           [](const Json& v, Chat& r) { r.tools = v; }},
          {{"tool_choice", FieldType::any, 0, 0, "auto",
            "none, auto, required, or {\"type\": \"function\" or \"custom\", type: {\"name\": "
            "...}}"},
           [](const Json& v, Chat& r) { r.tool_choice = v; }},
          {{"parallel_tool_calls", FieldType::boolean, 0, 0, "true",
            "a message may have several calls"},
           [](const Json& v, Chat& r) { r.parallel_calls = v; }},
          {{"reasoning_format", FieldType::text, 0, 64, "auto",
            "auto or deepseek = reasoning is returned in reasoning_content; none = it is a part of "
            "the content"},
           put_reasoning_format},
          budget_field("thinking_token_budget",
                       "the maximum number of tokens of reasoning, after which its end is forced; "
                       "-1 = no limit"),
          budget_field("reasoning_budget", "alias of thinking_token_budget"),
          {{"functions", FieldType::array, 0, 128, "none",
            "older form of tools: the functions alone; the message has one function_call"},
           put_functions},
          {{"function_call", FieldType::any, 0, 0, "auto",
            "older form of tool_choice: none, auto or {\"name\": ...}"},
           put_function_call},
          {{"documents", FieldType::array, 0, 128, "none", "documents for the chat template"},
           [](const Json& v, Chat& r) { r.documents = v; }},
          {{"chat_template_kwargs", FieldType::object, 0, 64, "none",
            "additional variables of the chat template, such as enable_thinking"},
           [](const Json& v, Chat& r) { r.template_variables.update(v); }},
          {{"reasoning_effort", FieldType::text, 0, 64, "as the chat template has it",
            "none, minimal, low, medium, high, xhigh or max; another word is a variable of the "
            "chat "
            "template"},
           [](const Json& v, Chat& r) { r.template_variables["reasoning_effort"] = v; }},
          {{"add_generation_prompt", FieldType::boolean, 0, 0, "true",
            "end the prompt with the start of the assistant's message"},
           [](const Json& v, Chat& r) { r.ending.add_generation_prompt = v; }},
          {{"continue_final_message", FieldType::boolean, 0, 0, "false",
            "continue the last message, of the assistant; requires add_generation_prompt false"},
           [](const Json& v, Chat& r) { r.ending.continue_final = v; }},
      });
  return all;
}

template <>
const Fields<Completion>& fields_of() {
  static const Fields<Completion> all = joined<Completion>(
      {model_field(),
       {{"prompt", FieldType::prompts, 1, 32, "",
         "a prompt as text or token ids, or an array of prompts", true},
        [](const Json& v, Completion& r) { r.prompts = prompts_of(v); }}},
      generation_fields(),
      {
          {{"best_of", FieldType::integer, 1, kMostChoices, "n", "must equal n"},
           [](const Json& v, Completion& r) { r.best_of = v; }},
          bounded(-1, kMostLogprobs, option("logprobs", "logprobs", "none")),
          {{"echo", FieldType::boolean, 0, 0, "false",
            "return the prompt before the generated text; with logprobs, also its "
            "log-probabilities"},
           [](const Json& v, Completion& r) { r.echo = v; }},
          {{"suffix", FieldType::text, 0, kMostText, "none",
            "the text after the generated one, for models whose tokenizer has tokens for it"},
           [](const Json& v, Completion& r) { r.suffix = v; }},
          {{"parse_special", FieldType::boolean, 0, 0, "true",
            "parse names of special tokens in the text as special tokens"},
           [](const Json& v, Completion& r) { r.special = special_tokens(v); }},
      });
  return all;
}

}  // namespace fovea::serve
