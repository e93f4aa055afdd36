#include "tokenizer/training/character_trainer.h"

#include <algorithm>

#include "base/fields.h"
#include "base/json.h"
#include "tokenizer/state/state.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

constexpr const char* unknown_text = "<unk>";
constexpr const char* end_of_text = "<|endoftext|>";

ordered_json special_token(const char* text, size_t id) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Returns the tokenizer.json of a BPE model without merges, which has one token per character, also
// in Hugging Face's library. Its unknown token must be in the vocabulary as well.
std::string tokenizer_json(const std::vector<char32_t>& characters, bool separate_documents) {
  ordered_json vocabulary = ordered_json::object(), added = ordered_json::array();
  size_t count = 0;
  // Appends to the underlying list directly; the object would compare each key with all others.
  auto& entries = vocabulary.get_ref<ordered_json::object_t&>();
  for (const char32_t character : characters) {
    std::string text;
    utf8::append(text, character);
    entries.emplace_back(text, count++);
  }
  const auto add_special = [&](const char* text) {
    added.push_back(special_token(text, count));
    entries.emplace_back(text, count++);
  };
  add_special(unknown_text);
  if (separate_documents) add_special(end_of_text);
  return pretty(ordered_json{{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", added},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", nullptr},
                             {"post_processor", nullptr},
                             {"decoder", {{"type", "Fuse"}}},
                             {"model",
                              {{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", unknown_text},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", false},
                               {"vocab", vocabulary},
                               {"merges", ordered_json::array()}}}});
}

std::string config_json(const CharacterTrainerOptions& options) {
  ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                         {"clean_up_tokenization_spaces", false},
                         {"unk_token", unknown_text}};
  if (options.separate_documents) config["eos_token"] = end_of_text;
  if (options.context > 0) config["model_max_length"] = options.context;
  return pretty(config);
}

}  // namespace

CharacterTrainer::CharacterTrainer() : counts_(utf8::code_points) {}

void CharacterTrainer::add(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x80) {
      ++counts_[byte];
      ++i;
      continue;
    }
    const utf8::Character character = utf8::first(text.substr(i));
    ++counts_[character.code_point];
    i += character.bytes;
  }
}

std::vector<char32_t> CharacterTrainer::characters(int64_t limit) const {
  std::vector<char32_t> found;
  for (char32_t c = 0; c < utf8::code_points; ++c) {
    if (counts_[c] > 0) found.push_back(c);
  }
  if (static_cast<int64_t>(found.size()) <= limit) return found;
  std::stable_sort(found.begin(), found.end(),
                   [&](char32_t a, char32_t b) { return counts_[a] > counts_[b]; });
  found.resize(static_cast<size_t>(limit));
  std::sort(found.begin(), found.end());
  return found;
}

Tokenizer CharacterTrainer::train(const CharacterTrainerOptions& options) const {
  const int64_t special = options.separate_documents ? 2 : 1;
  check_field(options.vocabulary == 0 || options.vocabulary > special, "vocabulary",
              "is {}, which leaves no room for a character; expected at least {}",
              options.vocabulary, special + 1);
  const int64_t limit = options.vocabulary == 0 ? utf8::code_points : options.vocabulary - special;
  return Tokenizer(parse_tokenizer(
      {tokenizer_json(characters(limit), options.separate_documents), config_json(options)},
      "tokenizer.json", "tokenizer_config.json"));
}

}  // namespace fovea::text
