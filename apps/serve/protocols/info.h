#pragma once

#include <string>

#include "serve/models/served_model.h"

namespace fovea::serve {

// Responses in the formats of text-embeddings-inference.

// /info: the model, its kind and the limits of requests.
Json info_json(const ServedModel& model);
// /tokenizer_info, in vLLM's format.
Json tokenizer_info_json(const ServedModel& model);
// /tokenize with `inputs`: for each text [{"id", "text", "special", "start", "stop"}, ...], with
// positions in characters. Throws ApiError 400 if the response would be too large.
std::string token_lists(const TokenizeRequest& request, const text::Tokenizer& tokenizer);

// /decode: ["text", ...]. Throws ApiError 400 if the response would be too large.
Json decoded_texts(const DecodeRequest& request, const text::Tokenizer& tokenizer);

}  // namespace fovea::serve
