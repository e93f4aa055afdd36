#pragma once

// Reads the parts of tokenizer.json around the model. A missing part is null. Throws Unsupported,
// with the JSON path, for an unknown part; BadFile for a damaged one.

#include <string>

#include <nlohmann/json.hpp>

#include "tokenizer/json_part.h"
#include "tokenizer/state.h"

namespace fovea {

Normalizers parse_normalizers(const nlohmann::json& json, const std::string& path);
PreTokenizers parse_pre_tokenizers(const nlohmann::json& json, const std::string& path);
// Ids must be below `size`, the number of tokens.
PostProcessors parse_post_processors(const nlohmann::json& json, const std::string& path,
                                     size_t size);
Decoders parse_decoders(const nlohmann::json& json, const std::string& path);
std::optional<Truncation> parse_truncation(const nlohmann::json& json, const std::string& path);
std::optional<Padding> parse_padding(const nlohmann::json& json, const std::string& path,
                                     size_t size);

AddedToken parse_added_token(const JsonPart& json, int32_t id);
// Makes a token of the vocabulary an added token. `limit` is shared by all added tokens.
void add_token(const AddedToken& token, TokenizerState& state, GrowthLimit& limit);

// Applies tokenizer_config.json: the additional tokens, the start and end tokens, and whether these
// are added to a text.
void apply_config(const std::string& config, const std::string& path, TokenizerState& state);

}  // namespace fovea
