#include "text/characters.h"

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

void CharacterModel::tokens(std::string_view text, int32_t unknown,
                            std::vector<Token>& tokens) const {
  while (!text.empty()) {
    const utf8::Character character = utf8::first(text);
    const int32_t known = id_of(character.code_point), id = known == absent ? unknown : known;
    if (id != absent) tokens.push_back({id, text.substr(0, character.bytes)});
    text.remove_prefix(character.bytes);
  }
}

}  // namespace fovea
