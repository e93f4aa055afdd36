#pragma once

// Reads the parts of tokenizer.json around the model. `json` is null for a missing part. Throws
// Unsupported, naming the JSON path, if a part is unknown; throws BadFile if it is damaged.

#include <string>

#include <nlohmann/json.hpp>

#include "tokenizer/pipeline/json_part.h"
#include "tokenizer/state/state.h"

namespace fovea::text {

std::optional<Truncation> parse_truncation(const nlohmann::json& json, const std::string& path);
std::optional<Padding> parse_padding(const nlohmann::json& json, const std::string& path,
                                     size_t size);

AddedToken parse_added_token(const JsonPart& json, int32_t id);
// Adds a token of the vocabulary to the added tokens. `limit` bounds how much normalisation may
// lengthen all of them.
void add_token(const AddedToken& token, TokenizerState& state, GrowthLimit& limit);

// Applies the text of tokenizer_config.json: additional tokens, the start and end tokens, and
// whether these are added to a text.
void apply_config(const std::string& config, const std::string& path, TokenizerState& state);

}  // namespace fovea::text
