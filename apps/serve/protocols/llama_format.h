#pragma once

#include <memory>
#include <string>

#include "serve/generation/generation_format.h"

namespace fovea::serve {

// The completions of llama.cpp's server: one object for each choice, or events of a stream. `model`
// is the name of the model, `context` the number of tokens that it has room for.
std::unique_ptr<GenerationFormat> llama_completion(const LlamaCompletionRequest& request,
                                                   std::string model, int64_t context);

// Settings as that server names them.
Json llama_settings(const infer::GenerateOptions& options, bool stream, int64_t context);

}  // namespace fovea::serve
