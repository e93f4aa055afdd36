#include "fovea/text/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tokenizer/training/character_trainer.h"

namespace fovea::text {
namespace {

using Ids = std::vector<int32_t>;
using namespace std::string_literals;

Tokenizer trained_on(std::string_view text, const CharacterTrainerOptions& options = {}) {
  CharacterTrainer trainer;
  trainer.add(text);
  return trainer.train(options);
}

TEST(Tokenizer, OrdersCharactersByCodePointBeforeSpecialTokens) {
  const Tokenizer tokenizer = trained_on("bé\na", {.separate_documents = true});
  EXPECT_EQ(tokenizer.size(), 6);
  EXPECT_EQ(tokenizer.encode("\nabé"), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(tokenizer.unknown_id(), 4);
  EXPECT_EQ(tokenizer.eos_id(), 5);
  EXPECT_EQ(tokenizer.bos_id(), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(4) && tokenizer.is_special(5));
  EXPECT_FALSE(tokenizer.is_special(3));
  EXPECT_EQ(tokenizer.decode({3, 4, 5, 0}), "é<unk><|endoftext|>\n");
}

TEST(Tokenizer, RoundTripsKnownCharacters) {
  const std::string text = "tabs\t, \r\n, NUL \0, 👩\u200d🚀, e\u0301, \U0010FFFF\uFEFF"s;
  const Tokenizer tokenizer = trained_on(text);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_TRUE(tokenizer.unknown(text).empty());
}

TEST(Tokenizer, MapsUnknownCharactersToTheUnknownToken) {
  const Tokenizer tokenizer = trained_on("ab");
  EXPECT_EQ(tokenizer.encode("a日日b"), (Ids{0, 2, 2, 1}));
  EXPECT_EQ(tokenizer.unknown("b日a本日"), (std::vector<std::string>{"日", "本"}));
}

TEST(Tokenizer, MapsInvalidBytesToUnknownCharacters) {
  const Tokenizer tokenizer = trained_on("ab");
  EXPECT_EQ(tokenizer.encode("a\xE2\x82"
                             "b\xFF"),
            (Ids{0, 2, 2, 1, 2}));
  EXPECT_EQ(tokenizer.unknown("\xFF"), (std::vector<std::string>{"\uFFFD"}));
}

TEST(Tokenizer, TreatsGuardedSpecialTokensAsText) {
  const Tokenizer tokenizer = trained_on("<unk>|endoftx", {.separate_documents = true});
  const std::string typed = "<unk><|endoftext|>k";
  const std::string guarded = tokenizer.guarded(typed);
  EXPECT_EQ(guarded, "\uFDD0<unk>\uFDD0<|endoftext|>k");
  EXPECT_EQ(tokenizer.encode(guarded, SpecialTokens::guarded), tokenizer.encode(typed));
  // Special tokens outside the guarded text are parsed, even next to it.
  const int32_t end = *tokenizer.eos_id();
  Ids expected = tokenizer.encode(typed);
  expected.insert(expected.begin(), end);
  expected.push_back(end);
  EXPECT_EQ(tokenizer.encode("<|endoftext|>" + guarded + "<|endoftext|>", SpecialTokens::guarded),
            expected);
  EXPECT_EQ(tokenizer.guarded("no <unk|>"), "no <unk|>");
}

TEST(Tokenizer, ReturnsThePlacesOfTheTokensOfAGuardedText) {
  const Tokenizer tokenizer = trained_on("<unk>|endoftx", {.separate_documents = true});
  const std::string text = "<|endoftext|>" + tokenizer.guarded("n<unk>") + "<|endoftext|>x";
  std::vector<std::string_view> parts;
  Ids ids;
  for (const Token& token : tokenizer.tokens(text, SpecialTokens::guarded)) {
    ids.push_back(token.id);
    parts.push_back(token.text);
  }
  EXPECT_EQ(ids, tokenizer.encode(text, SpecialTokens::guarded));
  EXPECT_EQ(parts, (std::vector<std::string_view>{"<|endoftext|>", "n", "<", "u", "n", "k", ">",
                                                  "<|endoftext|>", "x"}));
  EXPECT_EQ(parts[2].data() - text.data(), 13 + 1 + 3);  // after the mark
}

TEST(Tokenizer, TreatsNamesOfSpecialTokensAsText) {
  // The ids 0 to 4 are < > k n u.
  const Tokenizer tokenizer = trained_on("<unk>", {.separate_documents = true});
  EXPECT_EQ(tokenizer.encode("<unk>"), (Ids{0, 4, 3, 2, 1}));
  EXPECT_EQ(tokenizer.encode("u<unk>k<|endoftext|><unk", SpecialTokens::parsed),
            (Ids{4, 5, 2, 6, 0, 4, 3, 2}));
}

TEST(Tokenizer, ReturnsTheBytesOfAToken) {
  const Tokenizer tokenizer = trained_on("aé");
  const std::string text = "é\xFF日<unk>a";
  std::vector<std::string> pieces;
  Ids ids;
  for (const Token& token : tokenizer.tokens(text, SpecialTokens::parsed)) {
    pieces.emplace_back(token.text);
    ids.push_back(token.id);
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"é", "\xFF", "日", "<unk>", "a"}));
  EXPECT_EQ(ids, tokenizer.encode(text, SpecialTokens::parsed));
}

TEST(Tokenizer, KeepsTheMostFrequentCharactersWithinALimit) {
  const Tokenizer tokenizer = trained_on("aaabbccccd", {.vocabulary = 4});
  EXPECT_EQ(tokenizer.size(), 4);
  EXPECT_EQ(tokenizer.unknown("abcd"), (std::vector<std::string>{"d"}));
  EXPECT_THROW(trained_on("ab", {.vocabulary = 1}), Error);
}

TEST(Tokenizer, RefusesAnIdOutsideTheVocabulary) {
  const Tokenizer tokenizer = trained_on("ab");
  for (const int32_t id : {-1, 3}) {
    expect_error(ErrorKind::InvalidArgument,
                 {"token id: " + std::to_string(id) + " is not in the vocabulary; expected 0 to 2"},
                 [&] { tokenizer.decode({id}); });
  }
}

class TokenizerFile : public testing::Test {
 protected:
  // Returns the error of opening a character tokenizer after `edit` has changed its file.
  template <class Edit>
  std::string refusal(ErrorKind kind, Edit&& edit) {
    trained_on("ab").save(folder_);
    const std::string path = (folder_ / "tokenizer.json").string();
    nlohmann::json file = read_json(path);
    edit(file);
    write_file_atomically(path, pretty(file));
    try {
      Tokenizer::open(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      const std::string message = error.what();
      EXPECT_EQ(message.rfind(path + ": ", 0), 0u) << message;
      return message.substr(path.size() + 2);
    }
    return "no error";
  }

  TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
};

TEST_F(TokenizerFile, RoundTrips) {
  const Tokenizer saved = trained_on("a\0\"\\日"s, {.separate_documents = true, .context = 64});
  saved.save(folder_);
  for (const auto& path : {folder_, folder_ / "tokenizer.json"}) {
    const Tokenizer opened = Tokenizer::open(path);
    EXPECT_EQ(opened.hash(), saved.hash());
    EXPECT_EQ(opened.encode("日x\\a\0\""s), saved.encode("日x\\a\0\""s));
    EXPECT_EQ(opened.eos_id(), saved.eos_id());
  }
  const nlohmann::json config = read_json((folder_ / "tokenizer_config.json").string());
  EXPECT_EQ(config["model_max_length"], 64);
  EXPECT_EQ(config["unk_token"], "<unk>");
}

TEST_F(TokenizerFile, DropsUnknownCharactersWithoutAnUnknownToken) {
  refusal(ErrorKind::Internal, [](auto& file) { file["model"]["unk_token"] = nullptr; });
  const Tokenizer tokenizer = Tokenizer::open(folder_ / "tokenizer.json");
  EXPECT_EQ(tokenizer.unknown_id(), std::nullopt);
  EXPECT_EQ(tokenizer.encode("axb"), (Ids{0, 1}));
  EXPECT_EQ(tokenizer.tokens("axb").size(), 2u);
}

TEST_F(TokenizerFile, FindsNonSpecialAddedTokensInAnyText) {
  refusal(ErrorKind::Internal, [](auto& file) {
    file["added_tokens"].push_back({{"id", 3}, {"content", "ab"}, {"special", false}});
    file["added_tokens"].push_back({{"id", 4}, {"content", "abb"}, {"special", false}});
  });
  EXPECT_EQ(Tokenizer::open(folder_).encode("aababbab"), (Ids{0, 3, 4, 3}));
}

TEST_F(TokenizerFile, NamesTheUnsupportedPart) {
  const auto refused = [&](auto edit) { return refusal(ErrorKind::Unsupported, edit); };
  EXPECT_EQ(
      refused([](auto& file) { file["model"]["type"] = "Words"; }),
      "\"Words\" is not supported (model); expected one of BPE, WordPiece, Unigram, WordLevel");
  EXPECT_EQ(refused([](auto& file) { file["model"]["dropout"] = 0.1; }),
            "a dropout of 0.1 is not supported (model); expected none");
  const nlohmann::json unknown = {{"type", "Foo"}};
  EXPECT_EQ(refused([&](auto& file) {
              file["normalizer"] = {{"type", "Sequence"},
                                    {"normalizers", {{{"type", "NFC"}}, unknown}}};
            }),
            "\"Foo\" is not supported (normalizer.normalizers[1]); expected one of Sequence, NFC, "
            "NFD, NFKC, NFKD, Nmt, Precompiled, BertNormalizer, Lowercase, Strip, StripAccents, "
            "Replace, Prepend, Append, ByteLevel");
  for (const char* part : {"pre_tokenizer", "post_processor", "decoder"}) {
    EXPECT_NE(refused([&](auto& file) {
                file[part] = unknown;
              }).find(std::string("\"Foo\" is not supported (") + part + "); expected one of"),
              std::string::npos);
  }
}

TEST_F(TokenizerFile, NamesTheDamagedPart) {
  const auto refused = [&](auto edit) { return refusal(ErrorKind::BadFile, edit); };
  EXPECT_EQ(refused([](auto& file) { file = 1; }), "is 1 (the whole file); expected an object");
  EXPECT_EQ(refused([](auto& file) { file["model"].erase("vocab"); }),
            "is null (model.vocab); expected an object");
  EXPECT_EQ(refused([](auto& file) { file["model"]["vocab"]["a"] = 2147483647; }),
            "\"a\" has id 2147483647 (model.vocab); expected an id below 4, the number of tokens");
  EXPECT_EQ(refused([](auto& file) { file["model"]["vocab"]["a"] = 1; }),
            "\"a\" and \"b\" both have id 1 (model.vocab); expected distinct ids");
  EXPECT_EQ(refused([](auto& file) { file["model"]["vocab"].erase("a"); }),
            "no token has id 0 (model.vocab); expected ids without gaps");
  EXPECT_EQ(refused([](auto& file) { file["model"]["unk_token"] = "[UNK]"; }),
            "\"[UNK]\" is not in the vocabulary (model.unk_token); expected one of its tokens");
}

TEST(StreamingDecoder, GivesTheSameTextAsDecode) {
  const std::string text = "日本 👩\u200d🚀";
  const Tokenizer tokenizer = trained_on(text);
  StreamingDecoder decoder(tokenizer);
  std::string streamed;
  for (const int32_t id : tokenizer.encode(text)) streamed += decoder.add(id);
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(decoder.finish(), "");
}

}  // namespace
}  // namespace fovea::text
