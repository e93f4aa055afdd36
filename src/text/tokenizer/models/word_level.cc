#include "tokenizer/models/word_level.h"

#include "base/error.h"

namespace fovea::text {

WordLevelModel::WordLevelModel(WordLevelOptions options)
    : table_(options.texts),
      unk_(std::move(options.unk)),
      unk_id_(table_.find(unk_)),
      special_(std::move(options.special)) {}

void WordLevelModel::encode(std::string_view stretch, std::vector<Piece>& out, bool parsed) const {
  if (stretch.empty()) return;
  int32_t id = table_.find(stretch);
  if (id == PieceTable::absent || special_.hides(id, parsed)) id = unk_id_;
  if (id == PieceTable::absent) fail_without_unknown(stretch, unk_);
  out.push_back({id, 0, static_cast<uint32_t>(stretch.size())});
}

void fail_without_unknown(std::string_view stretch, std::string_view unk) {
  constexpr size_t kShown = 40;  // bytes of the text, enough to identify it
  std::string shown(stretch.substr(0, kShown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  fail(ErrorKind::BadFile,
       "tokenizer: the vocabulary lacks \"{}\" and an unknown token for it (model.unk_token "
       "\"{}\"); expected one of them",
       shown, unk);
}

}  // namespace fovea::text
