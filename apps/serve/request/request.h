#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ordered_json.h"
#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/engine.h"
#include "serve/request/guide.h"
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

// The requests of the routes: one struct each, whose fields (fields.h) are read from the body. A
// struct begins with the defaults; kPath names the route in messages and documents.

struct ModelRequest {
  std::string model;  // empty: the first model that can answer
};

// What chats and completions share.
struct GenerationRequest : ModelRequest {
  infer::GenerateOptions options;
  bool seed_given = false;
  bool max_tokens_given = false;  // true if the client set it to a value other than -1
  bool stream = false, include_usage = false, return_ids = false;
  int64_t logprob_copies = 1;         // of each log-probability in the response
  std::vector<Guide> guides;          // descriptions of the text; at most one applies
  std::vector<std::string> warnings;  // about what cannot be enforced
  std::vector<std::pair<std::string, std::string>> headers;  // of the response
  // Unless empty, the response depends on the request and this text alone: the ids and the seed, if
  // the request has none, are made from it, the time is 0, and what other requests affect (timings
  // and cached tokens) is left out.
  std::string identity;
  infer::AttentionTraceOptions trace;
};

struct ChatRequest : GenerationRequest {
  static constexpr const char* kPath = "/v1/chat/completions";
  Json messages, tools, documents, tool_choice, template_variables = Json::object();
  std::string messages_field = "messages";  // from which the messages are made, for errors
  std::set<std::string> custom_tools;       // names of tools whose input is a text
  ChatEnding ending;
  bool functions = false;       // calls in the older form of OpenAI's API
  bool logprobs = false;        // options.logprobs is the number of alternatives
  bool parallel_calls = true;   // a message may have several calls
  bool split_reasoning = true;  // reasoning is no part of the content
  std::optional<int64_t>
      reasoning_tokens;  // the maximum number of tokens of reasoning; -1 = no limit
};

// In the form of OpenAI's Responses API, from which messages and tools are made.
struct ResponsesRequest : ChatRequest {
  static constexpr const char* kPath = "/v1/responses";
  Json input, instructions, given_tools = Json::array(), given_choice, allowed_tools, reasoning,
                            text_format, metadata;
  std::string effort;      // of reasoning; empty = as the chat template has it
  bool summary = false;    // reasoning is returned as a summary
  bool encrypted = false;  // and in a form that can be sent back
  std::map<std::string, std::string> namespaces;  // of tools
};

// In Anthropic's form, from which messages and tools are made.
struct AnthropicRequest : ChatRequest {
  static constexpr const char* kPath = "/v1/messages";
  Json given_messages, given_tools = Json::array(), system;
  std::optional<bool> thinking = false;  // unset: as the chat template has it
  bool shows_reasoning = false;
  std::string effort;
};
struct AnthropicCountRequest : AnthropicRequest {
  static constexpr const char* kPath = "/v1/messages/count_tokens";
};

// What the chats and generated texts of Ollama share. The messages are in OpenAI's form.
struct OllamaRequest : ChatRequest {
  Json think;                        // null, true, false, or a level such as "high"
  int64_t context = 0;               // the number of tokens that the client expects; 0 = any
  std::optional<double> keep_alive;  // seconds; negative: for ever
};
struct OllamaChatRequest : OllamaRequest {
  static constexpr const char* kPath = "/api/chat";
};
struct OllamaGenerateRequest : OllamaRequest {
  static constexpr const char* kPath = "/api/generate";
  std::string prompt, system, suffix;
  Json images = Json::array();
  bool raw = false;  // the prompt is no message of a chat
};

struct CompletionRequest : GenerationRequest {
  static constexpr const char* kPath = "/v1/completions";
  std::vector<Prompt> prompts;
  std::string suffix;  // the text after the generated one
  bool echo = false;
  int64_t best_of = 0;  // 0 = the number of choices
  // Names of special tokens in a prompt are these tokens, as on other servers: the prompt is all
  // that the model reads.
  text::SpecialTokens special = text::SpecialTokens::parsed;
};

// In the format of llama.cpp's server.
struct LlamaCompletionRequest : CompletionRequest {
  static constexpr const char* kPath = "/completion";
};
struct InfillRequest : LlamaCompletionRequest {
  static constexpr const char* kPath = "/infill";
  std::string before, after, beginning;  // the text around the generated one, and its beginning
  Json files = Json::array();            // [{"filename", "text"}, ...]: before all
};
struct ApplyTemplateRequest : ChatRequest {
  static constexpr const char* kPath = "/apply-template";
};

struct TokenizeRequest : ModelRequest {
  static constexpr const char* kPath = "/tokenize";
  std::string text;
  bool add_special = false, with_pieces = false;
  text::SpecialTokens special = text::SpecialTokens::parsed;
  // The form of text-embeddings-inference: texts, with special tokens or without.
  std::vector<std::string> inputs;
  bool special_of_inputs = true;
};

struct DetokenizeRequest : ModelRequest {
  static constexpr const char* kPath = "/detokenize";
  std::vector<int32_t> ids;
  bool skip_special = false;
};

// In the format of text-embeddings-inference.
struct DecodeRequest : ModelRequest {
  static constexpr const char* kPath = "/decode";
  std::vector<Prompt> ids;
  bool skip_special = true;
};

// What the routes of vectors share.
struct VectorRequest : ModelRequest {
  std::vector<Prompt> inputs;
  infer::EmbedOptions options;
};
struct OpenAIEmbedRequest : VectorRequest {
  static constexpr const char* kPath = "/v1/embeddings";
  bool base64 = false;
};
// In the format of llama.cpp's server.
struct LlamaEmbedRequest : VectorRequest {
  static constexpr const char* kPath = "/embedding";
  const char* field = "content";  // that has the texts
};
struct OllamaEmbedRequest : VectorRequest {
  static constexpr const char* kPath = "/api/embed";
  std::vector<std::string> warnings;
  std::optional<double> keep_alive;  // as in OllamaRequest
};
// The older form, for one text.
struct OllamaEmbeddingsRequest : OllamaEmbedRequest {
  static constexpr const char* kPath = "/api/embeddings";
};
struct EmbedRequest : VectorRequest {
  static constexpr const char* kPath = "/embed";
};
struct SparseEmbedRequest : VectorRequest {
  static constexpr const char* kPath = "/embed_sparse";
};
struct TokenEmbedRequest : VectorRequest {
  static constexpr const char* kPath = "/embed_all";
};

// In the format of text-embeddings-inference.
struct RerankRequest : ModelRequest {
  static constexpr const char* kPath = "/rerank";
  std::string query;
  std::vector<std::string> texts;
  infer::RerankOptions options;
  bool return_text = false;
};

// What the routes of labels share.
struct LabelRequest : ModelRequest {
  std::vector<infer::TextInput> inputs;
  infer::ClassifyOptions options;
};
struct ClassifyRequest : LabelRequest {
  static constexpr const char* kPath = "/v1/classify";
};
struct PredictRequest : LabelRequest {
  static constexpr const char* kPath = "/predict";
  bool many = false;  // the texts were sent as an array
};

// In the format of Hugging Face's inference services: {"inputs", "parameters"}. The routes have the
// names of its tasks.
struct TaskRequest : ModelRequest {
  infer::ClassifyOptions options;
  bool many = false;  // the inputs were sent as an array
};
struct EntitiesRequest : TaskRequest {
  static constexpr const char* kPath = "/token-classification";
  EntitiesRequest() { options.joining = infer::EntityJoining::simple; }  // as these services do
  std::vector<std::string> texts;
};
struct AnswersRequest : TaskRequest {
  static constexpr const char* kPath = "/question-answering";
  std::vector<infer::Question> questions;
};
struct MasksRequest : TaskRequest {
  static constexpr const char* kPath = "/fill-mask";
  std::vector<std::string> texts;
};
struct CandidatesRequest : TaskRequest {
  static constexpr const char* kPath = "/zero-shot-classification";
  std::vector<std::string> texts;
};

struct ScoreRequest : ModelRequest {
  static constexpr const char* kPath = "/v1/score";
  std::vector<std::string> first, second;
};

// In the format of Cohere, Jina and vLLM.
struct RankRequest : ModelRequest {
  static constexpr const char* kPath = "/v1/rerank";
  std::string query;
  std::vector<std::string> documents;
  int64_t most_results = 0;  // 0 = all
  bool return_documents = false;
};

struct SimilarityRequest : ModelRequest {
  static constexpr const char* kPath = "/similarity";
  std::string text;
  std::vector<std::string> others;
};

struct TranslateRequest : ModelRequest {
  static constexpr const char* kPath = "/translate";
  std::vector<std::string> texts;
  bool many = false;  // the texts were sent as an array
  std::string source, target;
  int64_t alternatives = 0;
  bool beam_tree = false;
};

struct DetectRequest {
  static constexpr const char* kPath = "/detect";
  std::string text;
};

struct FineTuningRequest {
  static constexpr const char* kPath = "/v1/fine_tuning/jobs";
  tuning::JobRequest job;
  std::vector<tuning::JobMethod> methods;  // whose options the request has
};

struct BatchRequest {
  static constexpr const char* kPath = "/v1/batches";
  std::string input_file, endpoint;
  Json metadata;
};

// Returns whether a value asks for nothing, as some clients send for each field that they know:
// null, false, an empty text, list or object.
bool is_neutral(const Json& value);
// Parses a JSON object. Throws ApiError 400 if it is not one.
Json parse_body(const std::string& body);
// Parses JSON that a model or a file of a model has. Returns a discarded value if it is invalid or
// exceeds the limits of parse_ordered_json.
Json json_or_discarded(std::string_view text);

}  // namespace fovea::serve
