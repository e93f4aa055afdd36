#pragma once

// The parts of a tokenizer.json, for code that creates one: trainers and readers of older formats.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea::text {

// The parts of the file; null for a part that the tokenizer does not have.
struct TokenizerFile {
  nlohmann::ordered_json added_tokens = nlohmann::ordered_json::array();
  nlohmann::ordered_json normalizer, pre_tokenizer, post_processor, decoder, model;

  std::string text() &&;  // returns the text of the file; moves the parts
};

// Returns an entry of added_tokens.
nlohmann::ordered_json added_token(std::string_view text, size_t id, bool special = true);
// Returns the id of the first empty text.
std::optional<size_t> index_of_empty(const std::vector<std::string>& texts);
// Returns model.vocab as an object. Empty texts are skipped, except that of the token `empty`.
nlohmann::ordered_json vocabulary_object(const std::vector<std::string>& texts,
                                         std::optional<size_t> empty = {});

struct BpeParts {
  nlohmann::ordered_json vocabulary;
  nlohmann::ordered_json merges = nlohmann::ordered_json::array();
  nlohmann::ordered_json unk_token = nullptr;  // null: none
  std::string end_of_word_suffix = {};
  bool fuse_unk = false;
  bool byte_fallback = false;
};
nlohmann::ordered_json bpe_model(BpeParts parts);
nlohmann::ordered_json wordpiece_model(nlohmann::ordered_json vocabulary, const std::string& unk);
nlohmann::ordered_json unigram_model(const std::vector<std::pair<std::string, double>>& pieces,
                                     size_t unk_id, bool byte_fallback);

nlohmann::ordered_json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex);
nlohmann::ordered_json metaspace(const char* prepend_scheme, bool split);
nlohmann::ordered_json sequence(const char* parts, nlohmann::ordered_json list);
nlohmann::ordered_json replace(nlohmann::ordered_json pattern, const char* content);

// A template of TemplateProcessing: a list of "$A", "$B" and texts of special tokens, each with its
// type id.
using Template = std::vector<std::pair<std::string, int>>;
nlohmann::ordered_json template_processing(
    const Template& single, const Template& pair,
    const std::vector<std::pair<std::string, size_t>>& special_tokens);

}  // namespace fovea::text
