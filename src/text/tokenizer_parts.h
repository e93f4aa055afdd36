#pragma once

// The parts of tokenizer.json around the model, out of their JSON. An absent part is null.
// Unsupported, with the JSON path, for a part that fovea does not know; BadFile for a damaged one.

#include <string>

#include <nlohmann/json.hpp>

#include "text/tokenizer_state.h"

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

}  // namespace fovea
