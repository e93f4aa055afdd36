#include "tokenizer/models/characters.h"

#include "unicode/utf8.h"

namespace fovea::text {
namespace {

constexpr char32_t page_size = 256;

}  // namespace

CharacterModel::CharacterModel(int32_t unknown)
    : pages_(utf8::code_points / page_size), unknown_(unknown) {}

void CharacterModel::add(char32_t code_point, int32_t id) {
  std::vector<int32_t>& page = pages_[code_point / page_size];
  if (page.empty()) page.assign(page_size, absent);
  page[code_point % page_size] = id;
}

int32_t CharacterModel::id_of(char32_t code_point) const {
  const std::vector<int32_t>& page = pages_[code_point / page_size];
  return page.empty() ? absent : page[code_point % page_size];
}

void CharacterModel::ids(std::string_view text, std::vector<int32_t>& ids) const {
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
    if (id == absent) id = unknown_;
    *out = id;
    out += id != absent;
  }
  ids.resize(static_cast<size_t>(out - ids.data()));
}

void CharacterModel::encode(std::string_view text, std::vector<Piece>& pieces, bool) const {
  uint32_t end = 0;  // of the tokens so far; omitted characters do not count, as in BpeModel
  for (size_t i = 0; i < text.size();) {
    const utf8::Character character = utf8::first(text.substr(i));
    const int32_t known = id_of(character.code_point), id = known == absent ? unknown_ : known;
    i += character.bytes;
    if (id == absent) continue;
    pieces.push_back({id, end, end + character.bytes});
    end += character.bytes;
  }
}

}  // namespace fovea::text
