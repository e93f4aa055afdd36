#include "tokenizer/state/file.h"

#include <algorithm>

#include "base/json.h"

namespace fovea::text {

using nlohmann::ordered_json;

// The lists of a vocabulary take many times the memory of its texts, so they are moved here and
// below; an initializer list would copy them.
std::string TokenizerFile::text() && {
  ordered_json json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = std::move(added_tokens);
  json["normalizer"] = std::move(normalizer);
  json["pre_tokenizer"] = std::move(pre_tokenizer);
  json["post_processor"] = std::move(post_processor);
  json["decoder"] = std::move(decoder);
  json["model"] = std::move(model);
  return pretty(json);
}

ordered_json added_token(std::string_view text, size_t id, bool special) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

std::optional<size_t> index_of_empty(const std::vector<std::string>& texts) {
  const auto found = std::find(texts.begin(), texts.end(), "");
  if (found == texts.end()) return std::nullopt;
  return static_cast<size_t>(found - texts.begin());
}

ordered_json vocabulary_object(const std::vector<std::string>& texts, std::optional<size_t> empty) {
  ordered_json vocabulary = ordered_json::object();
  // Appends to the underlying list directly; the object would compare each key with all others.
  auto& entries = vocabulary.get_ref<ordered_json::object_t&>();
  entries.reserve(texts.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    if (!texts[id].empty() || empty == id) entries.emplace_back(texts[id], id);
  }
  return vocabulary;
}

ordered_json bpe_model(BpeParts parts) {
  ordered_json model = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", std::move(parts.unk_token)},
                        {"continuing_subword_prefix", ""},
                        {"end_of_word_suffix", std::move(parts.end_of_word_suffix)},
                        {"fuse_unk", parts.fuse_unk},
                        {"byte_fallback", parts.byte_fallback},
                        {"ignore_merges", false}};
  model["vocab"] = std::move(parts.vocabulary);
  model["merges"] = std::move(parts.merges);
  return model;
}

ordered_json wordpiece_model(ordered_json vocabulary, const std::string& unk) {
  ordered_json model = {{"type", "WordPiece"},
                        {"unk_token", unk},
                        {"continuing_subword_prefix", "##"},
                        {"max_input_chars_per_word", 100}};
  model["vocab"] = std::move(vocabulary);
  return model;
}

ordered_json unigram_model(const std::vector<std::pair<std::string, double>>& pieces, size_t unk_id,
                           bool byte_fallback) {
  ordered_json vocabulary = ordered_json::array();
  for (const auto& [text, score] : pieces) vocabulary.push_back(ordered_json::array({text, score}));
  ordered_json model = {{"type", "Unigram"}, {"unk_id", unk_id}};
  model["vocab"] = std::move(vocabulary);
  model["byte_fallback"] = byte_fallback;
  return model;
}

ordered_json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

ordered_json metaspace(const char* prepend_scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", "▁"},
          {"prepend_scheme", prepend_scheme},
          {"split", split}};
}

ordered_json sequence(const char* parts, ordered_json list) {
  return {{"type", "Sequence"}, {parts, std::move(list)}};
}

ordered_json replace(ordered_json pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}};
}

ordered_json template_processing(
    const Template& single, const Template& pair,
    const std::vector<std::pair<std::string, size_t>>& special_tokens) {
  const auto parts = [](const Template& entries) {
    ordered_json list = ordered_json::array();
    for (const auto& [text, type] : entries) {
      const bool sequence = text == "$A" || text == "$B";
      list.push_back({{sequence ? "Sequence" : "SpecialToken",
                       {{"id", sequence ? text.substr(1) : text}, {"type_id", type}}}});
    }
    return list;
  };
  ordered_json tokens = ordered_json::object();
  for (const auto& [text, id] : special_tokens)
    tokens[text] = {
        {"id", text}, {"ids", ordered_json::array({id})}, {"tokens", ordered_json::array({text})}};
  return {{"type", "TemplateProcessing"},
          {"single", parts(single)},
          {"pair", parts(pair)},
          {"special_tokens", std::move(tokens)}};
}

}  // namespace fovea::text
