#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fovea/study/inspect.h"

namespace fovea::inspector {

// Returns the greedy answer of a model to `request`: {"prompt", "tokens", "chat"}. With "chat", the
// prompt is a user's message in the chat template of `folder`, if there is one. The result has the
// text of the answer, the ids of the whole text, and the number of those before the answer; of an
// encoder-decoder also the ids that the encoder reads.
nlohmann::ordered_json generation_json(const model::Model& model, const std::string& folder,
                                       const nlohmann::ordered_json& request);

// Returns the tokens of a user's message `prompt` of `request` in the chat template of `folder`, up
// to the beginning of the answer: {"ids", "text"}. Throws InvalidArgument if there is no template.
nlohmann::ordered_json prompt_json(const model::Model& model, const std::string& folder,
                                   const nlohmann::ordered_json& request);
bool has_chat_format(const model::Model& model, const std::string& folder);

// Compares the distributions p and q of the next token after each token of two runs: [token]:
// {"kl": KL(p || q), "reverse": KL(q || p)}. Throws InvalidArgument if the runs have different
// tokens or outputs of different sizes.
nlohmann::ordered_json divergence_json(const study::Inspection& one,
                                       const study::Inspection& other);

}  // namespace fovea::inspector
