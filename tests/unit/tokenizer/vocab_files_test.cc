#include "tokenizer/formats/vocab_files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tokenizer/formats/sentencepiece.h"
#include "tokenizer/state/state.h"

namespace fovea::text {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;
using Type = SentencePieceFile::Type;

Tokenizer opened(const std::string& text) {
  return Tokenizer(parse_tokenizer({text, ""}, "tokenizer.json", "tokenizer_config.json"));
}

std::string from_lines(const std::string& text, const std::string& config = "") {
  return tokenizer_json_from_vocab_txt(text, "vocab.txt", config, "tokenizer_config.json");
}

std::string from_merges(const std::string& vocab, const std::string& merges,
                        const std::string& config = "") {
  return tokenizer_json_from_merges(vocab, "vocab.json", merges, "merges.txt", config,
                                    "tokenizer_config.json");
}

std::string from_model(const std::string& model, const std::string& config = "") {
  return tokenizer_json_from_sentencepiece(model, "spiece.model", config, "tokenizer_config.json");
}

TEST(VocabFiles, ConvertsLinesToWordPiece) {
  const std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##c\r\n";
  const Tokenizer lower = opened(from_lines(lines));
  EXPECT_EQ(lower.encode("ABC abc"), (Ids{5, 6, 5, 6}));
  EXPECT_EQ(lower.encoding("abc", "ab").ids, (Ids{2, 5, 6, 3, 5, 3}));
  EXPECT_EQ(lower.encoding("abc", "ab").type_ids, (Ids{0, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(lower.is_special(4));
  const Tokenizer cased = opened(from_lines(lines, R"({"do_lower_case": false})"));
  EXPECT_EQ(cased.encode("ABC abc"), (Ids{1, 5, 6}));
  const Tokenizer marks = opened(from_lines("<s>\n<pad>\n</s>\n[UNK]\n<mask>\na\n",
                                            R"({"tokenizer_class":"MPNetTokenizer"})"));
  EXPECT_EQ(marks.encoding("a", "a").ids, (Ids{0, 5, 2, 2, 5, 2}));
}

TEST(VocabFiles, RefusesDamagedLines) {
  expect_error(ErrorKind::BadFile, {"vocab.txt", "line 2"}, [] { from_lines("a\n\nb\n"); });
  expect_error(ErrorKind::BadFile, {"vocab.txt", "twice", "lines 1 and 2"},
               [] { from_lines("a\na\n"); });
  expect_error(ErrorKind::BadFile, {"vocab.txt", "UTF-8", "byte 2"}, [] { from_lines("a\n\xFF"); });
  expect_error(ErrorKind::BadFile, {"vocab.txt", "is empty"}, [] { from_lines(""); });
  expect_error(ErrorKind::BadFile, {"tokenizer_config.json"}, [] { from_lines("a\n", "[]"); });
  expect_error(ErrorKind::BadFile, {"unk_token"}, [] { from_lines("a\n", R"({"unk_token":3})"); });
}

constexpr const char* kVocabulary =
    R"({"<s>":0,"</s>":1,"a":2,"b":3,"ab":4,"Ġ":5,"Ġab":6,"<unk>":7,"<|endoftext|>":8})";
constexpr const char* kMerges = "#version: 0.2\na b\nĠ ab\n";

TEST(VocabFiles, ConvertsMergesToByteLevelBpe) {
  const Tokenizer plain = opened(from_merges(kVocabulary, kMerges));
  EXPECT_EQ(plain.encode("ab ab"), (Ids{4, 6}));
  EXPECT_EQ(plain.decode({4, 6}), "ab ab");
  EXPECT_EQ(plain.eos_id(), std::nullopt);  // the end token is in tokenizer_config.json
  EXPECT_TRUE(plain.is_special(8));
  const Tokenizer marks =
      opened(from_merges(kVocabulary, kMerges,
                         R"({"tokenizer_class":"RobertaTokenizerFast","add_prefix_space":true})"));
  EXPECT_EQ(marks.encoding("ab").ids, (Ids{0, 6, 1}));
  EXPECT_EQ(marks.id_of("<mask>"), 10);  // after <pad>, which is not in the vocabulary either
}

TEST(VocabFiles, ReadsAddedTokensOfTheConfig) {
  const Tokenizer tokenizer =
      opened(from_merges(kVocabulary, kMerges,
                         R"({"added_tokens_decoder":{"9":{"content":"<x>","special":true},
                                  "8":{"content":"<|endoftext|>"}}})"));
  EXPECT_EQ(tokenizer.id_of("<x>"), 9);
  EXPECT_TRUE(tokenizer.is_special(9));
  EXPECT_FALSE(tokenizer.is_special(8));
  for (const char* decoder : {R"({"99999999999":{"content":"x"}})", R"({"-1":{"content":"x"}})",
                              R"({"9":7})", R"({"2":{"content":"x"}})", R"({"9":{"content":3}})"}) {
    expect_error(ErrorKind::BadFile, {"tokenizer_config.json"}, [&] {
      from_merges(kVocabulary, kMerges, fmt::format("{{\"added_tokens_decoder\":{}}}", decoder));
    });
  }
}

TEST(VocabFiles, RefusesDamagedMerges) {
  for (const char* vocabulary :
       {"[]", "{}", R"({"a":0,"b":0})", R"({"a":1})", R"({"a":-1})", R"({"a":{}})",
        R"({"":0,"a":0})", R"({"a":4294967296})", R"({"a":"0"})", R"({"a":0)", "3"}) {
    expect_error(ErrorKind::BadFile, {"vocab.json"}, [&] { from_merges(vocabulary, ""); });
  }
  for (const char* merges : {"a", "a ", " a", "a b c", "a  b"}) {
    expect_error(ErrorKind::BadFile, {"merges.txt", "line 1"},
                 [&] { from_merges(kVocabulary, merges); });
  }
  expect_error(ErrorKind::Unsupported, {"OtherTokenizer", "tokenizer_class"}, [] {
    from_merges(kVocabulary, kMerges, R"({"tokenizer_class":"OtherTokenizer"})");
  });
  expect_error(ErrorKind::BadFile, {"lacks the token", "</s>"}, [] {
    from_merges(
        R"({"a":0})", "",
        R"({"tokenizer_class":"RobertaTokenizer","added_tokens_decoder":{"1":{"content":"x"}}})");
  });
}

TEST(VocabFiles, MayHaveAnEmptyToken) {
  const Tokenizer tokenizer = opened(from_merges(
      R"({"a":0,"b":1,"":2})", "",
      R"({"tokenizer_class":"WhisperTokenizer","added_tokens_decoder":{"3":{"content":"<en>"}}})"));
  EXPECT_EQ(tokenizer.size(), 4);
  EXPECT_EQ(tokenizer.encode("ba"), (Ids{1, 0}));
  EXPECT_EQ(tokenizer.text_of(2), "");
  EXPECT_EQ(tokenizer.id_of("<en>"), 3);
}

// Returns an integer in the varint format of protocol buffers.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
std::string text(int field, std::string_view value) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + std::string(value);
}
std::string real(int field, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint(static_cast<uint64_t>(field) << 3 | 5) + bytes;
}
std::string piece(std::string_view value, float score, Type type = Type::normal) {
  return text(1, text(1, value) + real(2, score) + number(3, static_cast<uint64_t>(type)));
}

std::string small_model(int kind, bool byte_fallback = false) {
  std::string model = piece("<unk>", 0, Type::unknown) + piece("<s>", 0, Type::control) +
                      piece("</s>", 0, Type::control);
  model += piece("▁a", -1) + piece("▁", -4) + piece("a", -3) + piece("b", -3.5F);
  if (byte_fallback) model += piece("<0x21>", 0, Type::byte);
  return model + text(2, number(3, static_cast<uint64_t>(kind)) + number(35, byte_fallback)) +
         text(3, number(3, 1) + number(4, 1));
}

TEST(SentencePiece, ConvertsToUnigram) {
  const Tokenizer tokenizer = opened(from_model(small_model(1)));
  EXPECT_EQ(tokenizer.encode("a  ba"), (Ids{3, 4, 6, 5}));
  EXPECT_EQ(tokenizer.decode({3, 4, 6, 5}), "a ba");
  EXPECT_EQ(tokenizer.encode("a!"), (Ids{3, 0}));
  EXPECT_TRUE(tokenizer.is_special(1));
  const Tokenizer sentinels =
      opened(from_model(small_model(1), R"({"tokenizer_class":"T5Tokenizer","extra_ids":2})"));
  EXPECT_EQ(sentinels.id_of("<extra_id_0>"), 8);
  EXPECT_EQ(sentinels.id_of("<extra_id_1>"), 7);
  EXPECT_EQ(sentinels.encoding("a").ids, (Ids{3, 2}));
  const Tokenizer marks =
      opened(from_model(small_model(1), R"({"tokenizer_class":"XLMRobertaTokenizer"})"));
  EXPECT_EQ(marks.encoding("a", "b").ids, (Ids{0, 4, 2, 2, 5, 7, 2}));
  EXPECT_EQ(marks.id_of("<mask>"), 8);
}

TEST(SentencePiece, ConvertsToBpe) {
  const Tokenizer tokenizer = opened(from_model(small_model(2, true)));
  EXPECT_EQ(tokenizer.encode("a b!"), (Ids{3, 4, 6, 7}));
  EXPECT_EQ(tokenizer.encoding("a").ids, (Ids{1, 3}));
  EXPECT_EQ(tokenizer.decode({3, 4, 6, 7}), "a b!");
  const json file = json::parse(from_model(small_model(2)));
  EXPECT_EQ(file["model"]["merges"], json::parse(R"([["▁","a"]])"));
  const Tokenizer later = opened(from_model(small_model(2), R"({"legacy":false})"));
  EXPECT_EQ(later.encode("a b"), (Ids{3, 4, 6}));
}

TEST(SentencePiece, RefusesSettingsThatItDoesNotApply) {
  const std::string model = small_model(1);
  const auto refused = [&](const std::string& fields, const std::string& message,
                           const std::string& config = "") {
    expect_error(ErrorKind::Unsupported, {"spiece.model", message},
                 [&] { from_model(model + fields, config); });
  };
  refused(text(3, number(5, 0)), "normalizer_spec.escape_whitespaces is false; expected true");
  refused(text(2, text(53, "|")), "trainer_spec.pretokenization_delimiter is set; expected none");
  refused(text(2, number(60, 1)), "trainer_spec has field 60, which is not known");
  refused(text(3, number(9, 1)), "normalizer_spec has field 9");
  refused(text(5, text(2, "x")), "denormalizer_spec has rules; expected none");
  refused(text(9, ""), "the file has field 9");
  refused(text(2, number(24, 1)), "treat_whitespace_as_suffix is true; expected false for a T5",
          R"({"tokenizer_class":"T5Tokenizer"})");
  expect_error(ErrorKind::Unsupported, {"\"x\" is an unused piece; expected none"},
               [&] { from_model(small_model(2) + piece("x", -5, Type::unused)); });
}

TEST(SentencePiece, RefusesDamagedModels) {
  const std::string model = small_model(1);
  expect_error(ErrorKind::BadFile, {"spiece.model", "no pieces"}, [] { from_model(""); });
  expect_error(ErrorKind::BadFile, {"twice", "pieces 0 and 7"},
               [&] { from_model(model + piece("<unk>", 0)); });
  expect_error(ErrorKind::BadFile, {"empty piece"}, [&] { from_model(model + piece("", 0)); });
  expect_error(ErrorKind::BadFile, {"UTF-8"}, [&] { from_model(model + piece("\xC3", 0)); });
  expect_error(ErrorKind::BadFile, {"not finite"}, [&] { from_model(model + piece("x", NAN)); });
  expect_error(ErrorKind::BadFile, {"of type 9"},
               [&] { from_model(model + piece("x", 0, static_cast<Type>(9))); });
  expect_error(ErrorKind::BadFile, {"1025 bytes"},
               [&] { from_model(model + piece(std::string(1025, 'x'), 0)); });
  expect_error(ErrorKind::BadFile, {"as unknown"},
               [&] { from_model(model + text(2, number(40, 7))); });
  expect_error(ErrorKind::BadFile, {"as unknown"},
               [&] { from_model(model + text(2, number(40, UINT64_MAX))); });
  expect_error(ErrorKind::BadFile, {"more than 64 bits"},
               [&] { from_model(model + std::string(11, '\xFF')); });
  expect_error(ErrorKind::BadFile, {"ends before a field"},
               [&] { from_model(model + "\x0A" + varint(UINT64_MAX)); });
  expect_error(ErrorKind::BadFile, {"field of type 3"}, [&] { from_model(model + "\x0B"); });
  expect_error(ErrorKind::BadFile, {"another type"}, [&] { from_model(model + number(1, 1)); });
  expect_error(ErrorKind::Unsupported, {"kind word"}, [] { from_model(small_model(3)); });
  expect_error(ErrorKind::Unsupported, {"XLNetTokenizer"},
               [&] { from_model(model, R"({"tokenizer_class":"XLNetTokenizer"})"); });
  expect_error(ErrorKind::BadFile, {"extra_ids"}, [&] {
    from_model(model, R"({"tokenizer_class":"T5Tokenizer","extra_ids":1000000000000})");
  });
}

// Truncated or modified input gives an error or a model; the sanitizers detect invalid accesses.
TEST(SentencePiece, SurvivesAnyDamage) {
  const std::string model = small_model(1, true);
  int refused = 0;
  const auto read = [&](const std::string& bytes) {
    try {
      from_model(bytes);
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::BadFile || error.kind() == ErrorKind::Unsupported);
      ++refused;
    }
  };
  for (size_t size = 0; size < model.size(); ++size) read(model.substr(0, size));
  for (size_t bit = 0; bit < 8 * model.size(); ++bit) {
    std::string flipped = model;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    read(flipped);
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace fovea::text
