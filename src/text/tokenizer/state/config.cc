#include "tokenizer/state/config.h"

#include <charconv>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "tokenizer/models/piece_table.h"
#include "tokenizer/state/file.h"

namespace fovea::text {

using Json = nlohmann::json;
using nlohmann::ordered_json;

TokenizerConfig::TokenizerConfig(std::string_view text, const std::string& path) : path_(path) {
  if (text.empty()) return;
  config_ = parse_json(text, path);
  if (!config_.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object", path, brief(config_));
  class_ = find_string(config_, "tokenizer_class", path_).value_or("");
  if (class_.ends_with("Fast")) class_.resize(class_.size() - 4);
}

bool TokenizerConfig::flag(std::string_view key, bool otherwise) const {
  return find_flag(key).value_or(otherwise);
}

std::optional<bool> TokenizerConfig::find_flag(std::string_view key) const {
  return find_bool(config_, key, path_);
}

int64_t TokenizerConfig::integer(std::string_view key, int64_t otherwise, int64_t most) const {
  return find_int(config_, key, path_, 0, most).value_or(otherwise);
}

std::string TokenizerConfig::token(const char* key, const std::string& otherwise) const {
  Json value = config_.value(key, Json());
  if (value.is_object()) value = value.value("content", Json());
  if (value.is_null()) return otherwise;
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    fail(ErrorKind::BadFile, "{}: {} is {}; expected the text of a token", path_, key,
         brief(value));
  }
  return value;
}

ordered_json TokenizerConfig::added_tokens(
    std::vector<std::string>& texts,
    const std::vector<std::pair<const char*, std::string>>& defaults) const {
  const Json decoder = config_.value("added_tokens_decoder", Json());
  if (decoder.is_object() && !decoder.empty()) return from_decoder(texts, decoder);
  const PieceTable table(texts);
  std::map<size_t, std::string> found;
  const auto add = [&](const std::string& text) {
    const int32_t id = table.find(text);
    if (id != PieceTable::absent) {
      found[static_cast<size_t>(id)] = text;
      return;
    }
    for (const auto& [known, other] : found) {
      if (other == text) return;
    }
    found[texts.size()] = text;
    texts.push_back(text);
  };
  for (const auto& [key, text] : defaults) {
    if (const std::string value = token(key, text); !value.empty()) add(value);
  }
  const Json more = config_.value("additional_special_tokens", Json());
  for (const Json& one : more.is_array() ? more : Json::array()) {
    if (one.is_string() && !one.get_ref<const std::string&>().empty()) add(one);
  }
  ordered_json list = ordered_json::array();
  for (const auto& [id, text] : found) list.push_back(added_token(text, id));
  return list;
}

ordered_json TokenizerConfig::from_decoder(std::vector<std::string>& texts,
                                           const Json& decoder) const {
  std::map<size_t, Json> by_id;
  for (const auto& [key, value] : decoder.items()) {
    size_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    // An id exceeds the vocabulary by at most the number of added tokens; otherwise ids would have
    // gaps.
    if (error != std::errc() || end != key.data() + key.size() ||
        id >= texts.size() + decoder.size() || !value.is_object()) {
      fail(ErrorKind::BadFile,
           "{}: {} maps to {} (added_tokens_decoder); expected ids below {} and objects", path_,
           brief(key), brief(value), texts.size() + decoder.size());
    }
    by_id[id] = value;
  }
  ordered_json list = ordered_json::array();
  for (const auto& [id, value] : by_id) {
    const std::string text = get_string(value, "content", path_);
    if (id >= texts.size()) texts.resize(id + 1);
    if (!texts[id].empty() && texts[id] != text) {
      fail(ErrorKind::BadFile,
           "{}: {} and {} both have id {} (added_tokens_decoder); expected distinct ids", path_,
           brief(texts[id]), brief(text), id);
    }
    texts[id] = text;
    ordered_json token = added_token(text, id, find_bool(value, "special", path_).value_or(false));
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
      token[key] = find_bool(value, key, path_).value_or(false);
    list.push_back(std::move(token));
  }
  return list;
}

void TokenizerConfig::refuse_class(const std::string& file, std::string_view expected) const {
  fail(
      ErrorKind::Unsupported,
      "{}: cannot make a {} from this file ({}: tokenizer_class); expected {}, or a tokenizer.json",
      file, class_, path_, expected);
}

}  // namespace fovea::text
