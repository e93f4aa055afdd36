// Tests parts of tokenizers that common files do not use, and damaged or hostile files.

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/expect_error.h"
#include "tokenizer/state/state.h"

namespace fovea::text {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;
using namespace std::string_literals;

Tokenizer open_text(const std::string& text, const std::string& config = "") {
  return Tokenizer(parse_tokenizer({text, config}, "t.json", "c.json"));
}

// Returns the file of a tokenizer with the words "a" to "d" and "[UNK]", separated by white space.
json words() {
  return json::parse(R"({"version": "1.0", "added_tokens": [],
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "normalizer": null, "decoder": null,
    "post_processor": null, "truncation": null, "padding": null,
    "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "[UNK]": 4},
              "unk_token": "[UNK]"}})");
}

json special(int id, const char* text) {
  return {{"id", id}, {"content", text}, {"special", true}, {"normalized", false}};
}

json truncation(int most, int stride, const char* strategy, const char* direction) {
  return {
      {"max_length", most}, {"stride", stride}, {"strategy", strategy}, {"direction", direction}};
}

TEST(TokenizerParts, TruncateLongTexts) {
  json file = words();
  file["truncation"] = truncation(3, 1, "LongestFirst", "Right");
  const Encoding right = open_text(file.dump()).encoding("a b c d a");
  EXPECT_EQ(right.ids, (Ids{0, 1, 2}));
  ASSERT_EQ(right.overflowing.size(), 1u);
  EXPECT_EQ(right.overflowing[0].ids, (Ids{2, 3, 0}));
  file["truncation"] = truncation(3, 0, "LongestFirst", "Left");
  const Encoding left = open_text(file.dump()).encoding("a b c d a");
  EXPECT_EQ(left.ids, (Ids{2, 3, 0}));
  EXPECT_EQ(left.overflowing.at(0).ids, (Ids{0, 1}));
  EXPECT_EQ(open_text(file.dump()).encoding("a b c d", "b c d a").ids.size(), 3u);
}

TEST(TokenizerParts, TruncateOneTextOfAPair) {
  json file = words();
  file["truncation"] = truncation(4, 0, "OnlySecond", "Right");
  const Tokenizer tokenizer = open_text(file.dump());
  EXPECT_EQ(tokenizer.encoding("a b c", "d d d").ids, (Ids{0, 1, 2, 3}));
  expect_error(ErrorKind::InvalidArgument, {"truncation: cuts only the second text"},
               [&] { tokenizer.encoding("a b c d a b"); });
  expect_error(ErrorKind::InvalidArgument, {"truncation: cannot remove 2 tokens from a text of 1"},
               [&] { tokenizer.encoding("a b c d a", "d"); });
}

TEST(TokenizerParts, PadABatchToItsLongestText) {
  json file = words();
  file["added_tokens"] = {special(5, "[PAD]")};
  file["padding"] = {{"strategy", "BatchLongest"}, {"direction", "Left"},
                     {"pad_to_multiple_of", 4},    {"pad_id", 5},
                     {"pad_type_id", 0},           {"pad_token", "[PAD]"}};
  const Tokenizer tokenizer = open_text(file.dump());
  const auto batch = tokenizer.encodings({"a", "a b c d a"});
  EXPECT_EQ(batch[0].ids, (Ids{5, 5, 5, 5, 5, 5, 5, 0}));
  EXPECT_EQ(batch[0].attention_mask, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(batch[1].ids, (Ids{5, 5, 5, 0, 1, 2, 3, 0}));
}

TEST(TokenizerParts, TreatNamesOfSpecialTokensAsText) {
  json file = words();
  file["added_tokens"] = {special(5, "</s>")};
  const Tokenizer tokenizer = open_text(file.dump());
  EXPECT_EQ(tokenizer.encode("a </s> b"), (Ids{0, 4, 1}));
  EXPECT_EQ(tokenizer.encoding("a </s> b").ids, (Ids{0, 4, 1}));
  EXPECT_EQ(tokenizer.encode("a </s> b", SpecialTokens::parsed), (Ids{0, 5, 1}));
}

TEST(TokenizerParts, LocateTokensInTextsWithInvalidBytes) {
  const Tokenizer tokenizer = open_text(words().dump());
  const auto tokens = tokenizer.tokens("a \xFF\xFE b");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1].text, "\xFF\xFE");
  EXPECT_EQ(tokens[2].text, "b");
  EXPECT_EQ(tokenizer.encoding("\xFF b").byte_offsets, (std::vector<Offsets>{{0, 1}, {2, 3}}));
}

TEST(TokenizerParts, ReadSpecialTokensFromTheConfig) {
  const std::string config = R"({"bos_token": "<s>", "eos_token": {"content": "</s>"},
    "add_bos_token": true, "add_eos_token": true,
    "added_tokens_decoder": {"5": {"content": "<s>", "special": true},
                             "6": {"content": "</s>", "special": true}}})";
  const Tokenizer tokenizer = open_text(words().dump(), config);
  EXPECT_EQ(tokenizer.size(), 7);
  EXPECT_EQ(tokenizer.bos_id(), 5);
  EXPECT_EQ(tokenizer.encoding("a b").ids, (Ids{5, 0, 1, 6}));
  EXPECT_EQ(tokenizer.encode("a b"), (Ids{0, 1}));
}

// A change of one value in a file, and a part of the expected error.
struct Damage {
  const char* at;  // JSON pointer
  json value;
  ErrorKind kind;
  const char* message;
};

void expect_damages(const std::vector<Damage>& damages) {
  for (const Damage& damage : damages) {
    json file = words();
    file[json::json_pointer(damage.at)] = damage.value;
    SCOPED_TRACE(damage.at + damage.value.dump());
    expect_error(damage.kind, {"t.json: ", damage.message}, [&] { open_text(file.dump()); });
  }
}

constexpr ErrorKind bad = ErrorKind::BadFile, not_supported = ErrorKind::Unsupported;

TEST(TokenizerParts, GiveTheBytesOfCtcTokensAsDecoded) {
  json file = words();
  file["model"]["vocab"] = {{"a", 0}, {"|", 1}, {"<pad>", 2}, {"[UNK]", 3}};
  file["decoder"] = {
      {"type", "CTC"}, {"pad_token", "<pad>"}, {"word_delimiter_token", "|"}, {"cleanup", true}};
  const Tokenizer tokenizer = open_text(file.dump());
  EXPECT_EQ(tokenizer.bytes_of(0) + tokenizer.bytes_of(2) + tokenizer.bytes_of(1), "a ");
  EXPECT_EQ(tokenizer.decode({0, 2, 1}), "a ");
  file["decoder"]["cleanup"] = false;
  EXPECT_EQ(open_text(file.dump()).bytes_of(1), "|");
}

TEST(TokenizerParts, NameTheDamagedToken) {
  expect_damages({
      {"/model/vocab/a", -1, bad, "\"a\" has id -1 (model.vocab); expected an id below 5"},
      {"/model/vocab/a", 2147483648, bad, "\"a\" has id 2147483648 (model.vocab)"},
      {"/model/vocab/a", 1, bad, "both have id 1 (model.vocab)"},
      {"/model/vocab/a", 1.5, bad, "is damaged (model.vocab); expected a string and its id"},
      {"/model/vocab/a", "x", bad, "is damaged (model.vocab)"},
      {"/model/vocab", json::object(), bad, "(model.vocab)"},
      {"/model/vocab", json::array({json::array({"a", -1.0})}), bad, "(model.vocab)"},
      {"/model/unk_token", "[NO]", bad, "\"[NO]\" is not in the vocabulary (model.unk_token)"},
      {"/added_tokens", {special(0, "b")}, bad, "both have id 0 (added_tokens[0].id)"},
      {"/added_tokens", {special(5, "a")}, bad, "\"a\" has two ids (model.vocab)"},
      {"/added_tokens",
       {special(7, "z")},
       bad,
       "has id 7 (added_tokens[0].id); expected an id below 6"},
      {"/added_tokens", {special(5, "")}, bad, "(added_tokens[0]"},
      {"/added_tokens", 5, bad, "is 5 (added_tokens); expected a list"},
  });
}

TEST(TokenizerParts, MayHaveAnEmptyTokenThatNoTextBecomes) {
  json file = words();
  file["model"]["vocab"][""] = 5;
  file["added_tokens"] = {special(6, "<end>")};
  const Tokenizer tokenizer = open_text(file.dump());
  EXPECT_EQ(tokenizer.size(), 7);
  EXPECT_EQ(tokenizer.encode(" a  d "), (Ids{0, 3}));
  EXPECT_EQ(tokenizer.decode({0, 5, 3}), "a  d");
  EXPECT_EQ(tokenizer.text_of(5), "");
  EXPECT_EQ(tokenizer.id_of(""), std::nullopt);
}

TEST(TokenizerParts, NameTheDamagedPart) {
  const json expression = {{"type", "Split"},
                           {"pattern", {{"Regex", "("}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  json large = expression, nested = expression, other = expression;
  large["pattern"]["Regex"] = "((((x{1000}){1000}){1000}){1000}){1000}";
  nested["pattern"]["Regex"] = "[a[bc\\H]]";
  other["pattern"]["Regex"] = "x";
  other["behavior"] = "Sideways";
  expect_damages({
      {"/normalizer", 5, bad, "is 5 (normalizer); expected an object"},
      {"/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "####"}}, bad, "base64"},
      {"/normalizer",
       {{"type", "Precompiled"}, {"precompiled_charsmap", "/////w=="}},
       bad,
       "normalizer: the charsmap's trie has an invalid size"},
      {"/pre_tokenizer", expression, not_supported,
       "pre_tokenizer.pattern: the regular expression"},
      {"/pre_tokenizer", large, not_supported, "pre_tokenizer.pattern: the regular expression"},
      {"/pre_tokenizer", nested, not_supported, "a negated class within a set is not supported"},
      {"/pre_tokenizer", other, not_supported,
       "\"Sideways\" is not supported (pre_tokenizer.behavior)"},
      {"/pre_tokenizer",
       {{"type", "FixedLength"}, {"length", 0}},
       bad,
       "pre_tokenizer: length is 0"},
      {"/post_processor",
       {{"type", "BertProcessing"}, {"sep", {"x", 9}}, {"cls", {"y", 0}}},
       bad,
       "adds a token of id 9 (post_processor); expected an id below 5"},
      {"/post_processor", {{"type", "BertProcessing"}, {"sep", 1}}, bad, "(post_processor)"},
      {"/decoder", {{"type", "Strip"}, {"content", "xy"}}, bad, "decoder"},
      {"/padding",
       {{"strategy", {{"Fixed", 1 << 30}}}, {"direction", "Right"}},
       bad,
       "padding.strategy: Fixed"},
      {"/truncation", {{"max_length", -1}}, bad, "truncation: max_length is -1"},
  });
}

TEST(TokenizerParts, RefuseInvalidJson) {
  const std::string good = words().dump();
  const auto damaged = [&](const std::string& old, const std::string& by) {
    std::string text = good;
    return text.replace(text.find(old), old.size(), by);
  };
  const std::string deep(100000, '['),
      texts[] = {"",
                 "{",
                 good + "x",
                 deep,
                 "{\"model\":" + deep,
                 damaged("\"a\":0", "\"\\ud800\":0"),
                 damaged("\"a\":0", "\"a\":0,,"),
                 damaged("\"a\":0", "\"\xFF\":0"),
                 damaged("\"a\":0", "\"a\":0,\"a\":0"),
                 damaged("\"a\":0", "\"\":1"),
                 damaged("\"a\":0", '"' + std::string(70000, 'x') + "\":0")};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 200));
    expect_error(ErrorKind::BadFile, {"t.json: "}, [&] { open_text(text); });
  }
}

}  // namespace
}  // namespace fovea::text
