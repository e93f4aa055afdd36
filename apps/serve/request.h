#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ordered_json.h"
#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/engine.h"
#include "serve/guide.h"
#include "tuning/job.h"

namespace fovea::serve {

using Json = nlohmann::ordered_json;

// An error that is reported to the client.
struct ApiError {
  int status = 400;
  std::string message, param, code;
};

using Prompt = std::variant<std::string, std::vector<int32_t>>;

// How the prompt of a chat ends: with the start of the assistant's message, or within the last one.
struct ChatEnding {
  bool add_generation_prompt = true, continue_final = false;
};

// The field values of one request. `options` starts with the model's defaults.
struct ApiRequest {
  std::string model;
  infer::GenerateOptions options;
  bool seed_given = false;
  bool max_tokens_given = false;  // true if the client set it to a value other than -1
  bool logprobs = false;          // of chats; `options.logprobs` is the number of alternatives
  int64_t best_of = 0;
  bool stream = false, include_usage = false, return_ids = false;

  std::vector<Prompt> prompts;  // of completions
  bool echo = false;
  std::string suffix;  // the text after the generated one

  Json messages, tools, documents, tool_choice, template_variables = Json::object();
  ChatEnding ending;
  bool functions = false;     // calls in the older form of OpenAI's API
  std::vector<Guide> guides;  // descriptions of the text; at most one applies
  infer::AttentionTraceOptions trace;

  std::vector<Prompt> inputs;  // of /v1/embeddings and /embed
  bool base64 = false;
  infer::EmbedOptions embedding;

  std::string query;               // of /rerank
  std::vector<std::string> texts;  // of /rerank and /translate
  infer::RerankOptions reranking;
  bool return_text = false;

  std::vector<infer::TextInput> pairs;  // of /v1/classify and /predict
  infer::ClassifyOptions classification;
  std::vector<std::string> first_texts, second_texts;  // of /v1/score
  int64_t most_results = 0;                            // of /v1/rerank; 0 = all

  bool many = false;  // of /translate and /predict: the texts were sent as an array
  std::string source, target;
  int64_t alternatives = 0;

  std::string text;  // of /tokenize
  // Of /tokenize, with the field `inputs`: the texts, and whether special tokens are added.
  std::vector<std::string> text_list;
  bool with_special = true;
  std::vector<int32_t> ids;                    // of /detokenize
  tuning::JobRequest job;                      // of /v1/fine_tuning/jobs
  std::vector<tuning::JobMethod> job_methods;  // whose options the request has
  bool add_special = false, with_pieces = false, skip_special = false;
  std::optional<bool> parse_special;  // of /tokenize (default: true) and completions (false)
  text::SpecialTokens special(bool parsed) const {
    return parse_special.value_or(parsed) ? text::SpecialTokens::parsed
                                          : text::SpecialTokens::as_text;
  }
};

// Returns whether a value asks for nothing, as some clients send for each field that they know:
// null, false, an empty text, list or object.
bool is_neutral(const Json& value);
// Parses a JSON object. Throws ApiError 400 if it is not one.
Json parse_body(const std::string& body);

}  // namespace fovea::serve
