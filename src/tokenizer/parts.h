#pragma once

// The parts of tokenizer.json around the model, out of their JSON. An absent part is null.
// Unsupported, with the JSON path, for a part that fovea does not know; BadFile for a damaged one.

#include <string>

#include <nlohmann/json.hpp>

#include "tokenizer/json_part.h"
#include "tokenizer/state.h"

namespace fovea {

Normalizers parse_normalizers(const nlohmann::json& json, const std::string& path);
PreTokenizers parse_pre_tokenizers(const nlohmann::json& json, const std::string& path);
// Ids are below `size`, the number of tokens.
PostProcessors parse_post_processors(const nlohmann::json& json, const std::string& path,
                                     size_t size);
Decoders parse_decoders(const nlohmann::json& json, const std::string& path);
std::optional<Truncation> parse_truncation(const nlohmann::json& json, const std::string& path);
std::optional<Padding> parse_padding(const nlohmann::json& json, const std::string& path,
                                     size_t size);

AddedToken parse_added_token(const JsonPart& json, int32_t id);
// Makes a token of the vocabulary one that is looked for in texts. The limit is that of all.
void add_token(const AddedToken& token, TokenizerState& state, GrowthLimit& limit);

// What tokenizer_config.json adds: tokens, which of them start and end a text, and whether they are
// put there.
void apply_config(const std::string& config, const std::string& path, TokenizerState& state);

}  // namespace fovea
