#include "text/characters.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer_state.h"
#include "text/utf8.h"

namespace fovea {
namespace {

constexpr char32_t page_size = 256;

}  // namespace

CharacterModel::CharacterModel() : pages_(utf8::code_points / page_size) {}

void CharacterModel::add(char32_t code_point, int32_t id) {
  std::vector<int32_t>& page = pages_[code_point / page_size];
  if (page.empty()) page.assign(page_size, absent);
  page[code_point % page_size] = id;
}

int32_t CharacterModel::id_of(char32_t code_point) const {
  const std::vector<int32_t>& page = pages_[code_point / page_size];
  return page.empty() ? absent : page[code_point % page_size];
}

void CharacterModel::encode(std::string_view text, int32_t unknown,
                            std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  ids.resize(before + text.size());  // a character has at least one byte
  int32_t* out = ids.data() + before;
  const int32_t* ascii = pages_[0].empty() ? nullptr : pages_[0].data();
  for (size_t i = 0; i < text.size();) {
    int32_t id = absent;
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x80) {
      if (ascii) id = ascii[byte];
      ++i;
    } else {
      const utf8::Character character = utf8::first(text.substr(i));
      id = id_of(character.code_point);
      i += character.bytes;
    }
    if (id == absent) id = unknown;
    *out = id;
    out += id != absent;
  }
  ids.resize(static_cast<size_t>(out - ids.data()));
}

CharacterTrainer::CharacterTrainer() : counts_(utf8::code_points) {}

void CharacterTrainer::add(std::string_view text) {
  while (!text.empty()) {
    const utf8::Character character = utf8::first(text);
    ++counts_[character.code_point];
    text.remove_prefix(character.bytes);
  }
}

Tokenizer CharacterTrainer::train(const Options& options) const {
  std::vector<char32_t> characters;
  for (char32_t c = 0; c < utf8::code_points; ++c) {
    if (counts_[c] > 0) characters.push_back(c);
  }
  const int64_t special = options.separates_documents ? 2 : 1, limit = options.vocabulary - special;
  if (options.vocabulary != 0) {
    check(limit >= 1, "--vocab-size {}: leaves no room for a character; expected at least {}",
          options.vocabulary, special + 1);
    if (static_cast<int64_t>(characters.size()) > limit) {
      std::stable_sort(characters.begin(), characters.end(),
                       [&](char32_t a, char32_t b) { return counts_[a] > counts_[b]; });
      characters.resize(static_cast<size_t>(limit));
      std::sort(characters.begin(), characters.end());
    }
  }
  TokenizerFiles files = character_tokenizer_files(characters, options);
  return Tokenizer(parse_tokenizer(std::move(files.tokenizer_json), std::move(files.config_json),
                                   "tokenizer.json"));
}

}  // namespace fovea
