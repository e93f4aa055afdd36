#pragma once

#include <cstdint>
#include <vector>

#include "fovea/text/calls.h"
#include "http/http.h"
#include "serve/models/served_model.h"

namespace fovea::serve {

struct PreparedPrompts {
  std::vector<std::vector<int32_t>> ids;                   // token ids of each prompt
  std::shared_ptr<const model::PromptImages> images = {};  // the images of a chat; null = none
  text::MessageRules message = {};                         // how the generated texts are read
  bool score = false;  // whether the response has the log-probabilities of the prompts too
};
// Tokenises the prompts of a request. Limits its max_tokens by the context and by the size of the
// response, and converts response_format and tool_choice to a constraint. Throws ApiError.
PreparedPrompts prepare(ChatRequest& request, ServedModel& model);
PreparedPrompts prepare(CompletionRequest& request, ServedModel& model,
                        const http::Exchange& exchange);

// Returns the tokens of the prompt of a chat. Throws ApiError.
std::vector<int32_t> prompt_of(const ChatRequest& request, ServedModel& model);

// Returns the text that each choice of a completion begins with: its prompt, if the request has
// `echo`, else nothing.
std::vector<std::string> echoed_prompts(const CompletionRequest& request, const ServedModel& model);

// Returns the text that the chat template makes of a conversation.
std::string rendered_chat(const ChatRequest& request, ServedModel& model);

// The special tokens around the parts of a text whose middle is generated (Bavarian et al. 2022).
struct MiddleTokens {
  int32_t prefix, suffix, middle;
};
// Returns those of a tokenizer, or nothing if it has none.
std::optional<MiddleTokens> middle_tokens(const text::Tokenizer& tokenizer);

}  // namespace fovea::serve
