#pragma once

#include <memory>

#include "serve/generation/generation_format.h"

namespace fovea::serve {

// OpenAI's formats of chats and completions. `model` is the name of the model that generates the
// text.
std::unique_ptr<GenerationFormat> openai_chat(const ChatRequest& request, const std::string& model);
// `echoed`: the text before each choice; empty = none.
std::unique_ptr<GenerationFormat> openai_completion(const CompletionRequest& request,
                                                    const std::string& model,
                                                    std::vector<std::string> echoed);

}  // namespace fovea::serve
