#pragma once

#include <memory>
#include <string>

#include "serve/generation/generation_format.h"

namespace fovea::serve {

// Ollama's chats: one line of JSON for each piece, or one object. `model` is the name in the
// response.
std::unique_ptr<GenerationFormat> ollama_chat(std::string model);
// Ollama's generated texts, in the same format.
std::unique_ptr<GenerationFormat> ollama_generate(std::string model);

// The response to a request without a message or a prompt, by which clients ask the server to load
// the model, or to unload it.
Json ollama_loaded(const std::string& model, bool chat, bool unload);

// Returns a time as RFC 3339 has it, in nanoseconds: "2026-01-02T03:04:05.000000006Z".
std::string rfc3339(int64_t seconds, int64_t nanoseconds);
std::string rfc3339_now();

}  // namespace fovea::serve
