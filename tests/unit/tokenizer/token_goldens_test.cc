// Compares token models with those of Hugging Face's library for the same vocabularies
// (tools/goldens/make_token_models.py).

#include <gtest/gtest.h>

#include <variant>

#include "base/json.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/models/word_level.h"
#include "tokenizer/models/wordpiece.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using nlohmann::json;
using TokenModel = std::variant<WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

// Returns a string with one byte for each code point of `text`; all code points are below 256.
std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    const utf8::Character character = utf8::first(text.substr(i));
    bytes += static_cast<char>(character.code_point);
    i += character.bytes;
  }
  return bytes;
}

std::string text_of(const json& entry, const json& text) {
  return entry.value("bytes", false) ? bytes_of(text.get<std::string>()) : text.get<std::string>();
}

BpeModel bpe(const json& entry) {
  BpeOptions options{.bytes = entry.value("bytes", false),
                     .unk = entry.value("unk_token", ""),
                     .continuing_subword_prefix = entry.value("continuing_subword_prefix", ""),
                     .end_of_word_suffix = entry.value("end_of_word_suffix", ""),
                     .fuse_unk = entry.value("fuse_unk", false),
                     .byte_fallback = entry.value("byte_fallback", false),
                     .ignore_merges = entry.value("ignore_merges", false)};
  for (const json& text : entry["texts"]) options.texts.push_back(text_of(entry, text));
  for (const json& merge : entry["merges"])
    options.merges.emplace_back(text_of(entry, merge[0]), text_of(entry, merge[1]));
  return BpeModel(std::move(options));
}

UnigramModel unigram(const json& entry) {
  UnigramOptions options{.unk_id = entry["unk_id"].get<int32_t>(),
                         .byte_fallback = entry["byte_fallback"].get<bool>()};
  for (const json& piece : entry["vocab"]) {
    options.texts.push_back(piece[0]);
    options.scores.push_back(piece[1]);
  }
  return UnigramModel(std::move(options));
}

TokenModel model_of(const json& entry) {
  const std::string type = entry["type"];
  if (type == "BPE") return bpe(entry);
  if (type == "Unigram") return unigram(entry);
  if (type == "WordLevel") return WordLevelModel({entry["texts"], entry["unk_token"]});
  return WordPieceModel(
      {entry["texts"], entry["unk_token"], "##", entry["max_input_chars_per_word"].get<size_t>()});
}

TEST(TokenGoldens, IdsAndOffsetsMatchTheReference) {
  const json entries = read_json("tests/goldens/token_models.json");
  ASSERT_GE(entries.size(), 13u);
  for (const json& entry : entries) {
    const TokenModel model = model_of(entry);
    for (const json& example : entry["cases"]) {
      const std::string stretch = text_of(entry, example[0]);
      std::vector<Piece> pieces;
      std::visit([&](const auto& one) { one.encode(stretch, pieces); }, model);
      json ids = json::array(), places = json::array();
      for (const Piece& piece : pieces) {
        ids.push_back(piece.id);
        places.push_back({piece.begin, piece.end});
      }
      EXPECT_EQ(ids, example[1]) << entry["name"] << ": " << example[0];
      EXPECT_EQ(places, example[2]) << entry["name"] << ": " << example[0];
    }
  }
}

}  // namespace
}  // namespace fovea::text
