// Tokenizer files that took very long or crashed the program.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/models/wordpiece.h"
#include "tokenizer/state/state.h"

namespace fovea {
namespace {

template <class Model>
std::vector<int32_t> tokens_of(const Model& model, std::string_view text) {
  std::vector<text::Piece> pieces;
  model.encode(text, pieces);
  std::vector<int32_t> ids;
  for (const text::Piece& piece : pieces) ids.push_back(piece.id);
  return ids;
}

// With one entry of 60 KB in the vocabulary, 40,000 characters took 19 seconds: every position of
// the text was compared with 60 KB. The time is now linear in the text for any pieces.
TEST(TokenizerFiles, WithLongPiecesTakeLinearTime) {
  constexpr size_t kSize = 4 << 20;
  const std::string text(kSize, 'a'), longest = std::string(60'000, 'a') + "b";
  const text::UnigramModel unigram(
      {.texts = {"<unk>", "a", longest}, .scores = {0, -1, -1}, .unk_id = 0});
  EXPECT_EQ(tokens_of(unigram, text), std::vector<int32_t>(kSize, 1));
  EXPECT_EQ(tokens_of(unigram, "a" + longest), std::vector<int32_t>({1, 2}));
  const text::WordPieceModel words({.texts = {"[UNK]", "a", "##a", "##" + longest},
                                    .unk = "[UNK]",
                                    .continuing_subword_prefix = "##",
                                    .max_input_chars_per_word = kSize});
  EXPECT_EQ(tokens_of(words, text).size(), kSize);
  EXPECT_EQ(tokens_of(words, "a" + longest), std::vector<int32_t>({1, 3}));
}

// A pattern such as (a+)+$ or (?=(a+))a*b ran for minutes on a text of 50,000 letters. The time of
// matching is now limited.
TEST(TokenizerFiles, WithPatternsThatBacktrackAreRefusedInTime) {
  for (const char* expression : {"(a+)+$", "(a|a)*b", "(.*)*=", "(a*)*c", R"((?=(a+))a*b\1)"}) {
    SCOPED_TRACE(expression);
    nlohmann::json file = nlohmann::json::parse(R"({"version": "1.0", "added_tokens": [],
      "normalizer": null, "decoder": null, "post_processor": null, "truncation": null,
      "padding": null, "model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1},
                                 "unk_token": "[UNK]"}})");
    file["pre_tokenizer"] = {{"type", "Split"},
                             {"pattern", {{"Regex", expression}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
    const text::Tokenizer tokenizer(text::parse_tokenizer({file.dump(), ""}, "t.json", "c.json"));
    try {
      tokenizer.encode(std::string(50000, 'a') + "!");  // ends quickly or gives an error
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported) << error.what();
    }
  }
}

// A tokenizer_config.json of 200,000 nested brackets next to a SentencePiece model crashed the
// program, because the parsed JSON was serialised again without a limit on its depth.
TEST(TokenizerFiles, WithADeeplyNestedConfigAreRefused) {
  const TemporaryFolder folder;
  std::filesystem::copy("tests/goldens/translation_tokenizers/source.spm",
                        folder.path() + "/spiece.model");
  std::ofstream(folder.path() + "/tokenizer_config.json")
      << "{\"a\":" << std::string(200'000, '[') << std::string(200'000, ']') << "}";
  expect_error(ErrorKind::BadFile, {"tokenizer_config.json", "nested"},
               [&] { text::Tokenizer::open(folder.path()); });
}

}  // namespace
}  // namespace fovea
