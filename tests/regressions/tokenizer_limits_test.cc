// Regression: a hostile tokenizer.json could exhaust the memory with a text of a few bytes: by
// steps that each double the text, replacements of empty matches, a template that repeats the text
// 2,000 times, or a stride that repeats each token. Each case now ends at a limit, with an error
// that names the component.

#include <gtest/gtest.h>
#include <malloc.h>

#include "base/json.h"
#include "support/expect_error.h"
#include "tokenizer/state/state.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;

using nlohmann::json;

text::Tokenizer open_text(const json& file) {
  return text::Tokenizer(text::parse_tokenizer({file.dump(), ""}, "t.json", "c.json"));
}

// Returns a tokenizer of single characters and "[UNK]".
json characters() {
  return json::parse(R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": null,
    "normalizer": null, "decoder": null, "post_processor": null, "truncation": null,
    "padding": null, "model": {"type": "BPE", "merges": [], "unk_token": "[UNK]",
                               "vocab": {"[UNK]": 0, "a": 1, "b": 2, " ": 3, "aa": 4}}})");
}

json sequence(const char* members, const json& part, int times) {
  return {{"type", "Sequence"}, {members, std::vector<json>(static_cast<size_t>(times), part)}};
}

json replace(const json& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

void refused(const json& file, const char* part, const std::string& text = "a b") {
  SCOPED_TRACE(part);
  const text::Tokenizer tokenizer = open_text(file);
  const std::string named = std::string("expands a text of ") + std::to_string(text.size()) +
                            " bytes too much (" + part + ")";
  expect_error(ErrorKind::BadFile, {named.c_str()}, [&] { tokenizer.encoding(text); });
}

TEST(TokenizerLimits, BoundNormalizers) {
  json file = characters();
  const std::string large(60000, 'x');
  const json each[] = {
      sequence("normalizers", replace({{"String", "a"}}, "aa"), 40),
      sequence("normalizers", replace({{"Regex", ""}}, large), 2),
      sequence("normalizers", {{"type", "Prepend"}, {"prepend", large}}, 200),
      sequence("normalizers", {{"type", "Append"}, {"append", large}}, 200),
  };
  for (const json& normalizer : each) {
    file["normalizer"] = normalizer;
    refused(file, "normalizer");
    expect_error(ErrorKind::BadFile, {"(normalizer)"}, [&] { open_text(file).encode("a b"); });
    expect_error(ErrorKind::BadFile, {"(normalizer)"}, [&] { open_text(file).guarded("a b"); });
  }
  file["normalizer"] = sequence("normalizers", {{"type", "ByteLevel"}}, 60);
  refused(file, "normalizer", "\u00E4\u00E4");
}

TEST(TokenizerLimits, BoundPreTokenizers) {
  json file = characters();
  const json printed = {{"type", "ByteLevel"},
                        {"add_prefix_space", true},
                        {"trim_offsets", true},
                        {"use_regex", false}};
  file["pre_tokenizer"] = sequence("pretokenizers", printed, 60);
  refused(file, "pre_tokenizer", "\u00E4\u00E4");
}

// The limit applies to the entire text: limits for the parts between added tokens would add up
// without bound.
TEST(TokenizerLimits, ApplyToTheEntireText) {
  json file = characters();
  file["added_tokens"] = {
      {{"id", 4}, {"content", "aa"}, {"special", false}, {"normalized", false}}};
  file["normalizer"] = {{"type", "Append"}, {"append", std::string(60000, 'b')}};
  const text::Tokenizer tokenizer = open_text(file);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "baa";
  expect_error(ErrorKind::BadFile, {"text of 300 bytes too much (normalizer)"},
               [&] { tokenizer.encode(text); });
  EXPECT_EQ(tokenizer.encode("baa").size(), 60002u);
}

TEST(TokenizerLimits, BoundAddedTokens) {
  json file = characters();
  file["normalizer"] = {{"type", "Append"}, {"append", std::string(1000, 'b')}};
  for (int i = 0; i < 200; ++i) {
    file["added_tokens"].push_back({{"id", 5 + i},
                                    {"content", "<" + std::to_string(i) + ">"},
                                    {"special", false},
                                    {"normalized", true}});
  }
  expect_error(ErrorKind::BadFile, {"(normalizer)"}, [&] { open_text(file); });
  file["normalizer"]["append"] = std::string(2000, 'b');
  expect_error(ErrorKind::BadFile, {"the normalizers produce 2003 bytes from <0> (added_tokens)"},
               [&] { open_text(file); });
}

TEST(TokenizerLimits, BoundSequences) {
  json file = characters();
  file["normalizer"] = sequence("normalizers", {{"type", "NFC"}}, 257);
  expect_error(ErrorKind::Unsupported, {"t.json: a sequence of more than 256", "(normalizer"},
               [&] { open_text(file); });
}

TEST(TokenizerLimits, BoundTemplates) {
  json file = characters();
  const json again = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", std::vector<json>(2000, again)},
                            {"pair", json::array({again})},
                            {"special_tokens", json::object()}};
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a";
  refused(file, "post_processor", text);
  file["post_processor"]["single"] = std::vector<json>(3, again);
  EXPECT_EQ(open_text(file).encoding("a").ids, std::vector<int32_t>({1, 1, 1}));

  const std::vector<int> ids(1000, 1);
  file["post_processor"]["single"] =
      std::vector<json>(5, json{{"SpecialToken", {{"id", "x"}, {"type_id", 0}}}});
  file["post_processor"]["special_tokens"] = {
      {"x", {{"id", "x"}, {"ids", ids}, {"tokens", std::vector<std::string>(1000, "a")}}}};
  expect_error(ErrorKind::Unsupported, {"a template that adds more than 4096 tokens"},
               [&] { open_text(file); });
}

TEST(TokenizerLimits, BoundTruncationAndPadding) {
  json file = characters();
  file["truncation"] = {
      {"max_length", 5000}, {"stride", 4999}, {"strategy", "LongestFirst"}, {"direction", "Right"}};
  refused(file, "truncation", std::string(10000, 'a'));
  file["truncation"] = nullptr;
  file["padding"] = {{"strategy", {{"Fixed", 1 << 20}}},
                     {"direction", "Right"},
                     {"pad_to_multiple_of", nullptr},
                     {"pad_id", 1},
                     {"pad_type_id", 0},
                     {"pad_token", std::string(60000, 'x')}};
  refused(file, "padding", "a");
  file["padding"]["strategy"] = {{"Fixed", 131072}};
  file["padding"]["pad_token"] = "<|endoftext|>";
  EXPECT_EQ(open_text(file).encoding("a").ids.size(), 131072u);
}

// The unknown token's name of 60 KB is written for each unknown character.
TEST(TokenizerLimits, BoundTheTextsOfTokens) {
  const std::string name(60000, '?');
  json file = characters();
  file["model"]["vocab"] = {{name, 0}, {"a", 1}};
  file["model"]["unk_token"] = name;
  refused(file, "model", std::string(10000, 'b'));
}

TEST(TokenizerLimits, BoundDecoders) {
  json file = characters();
  file["decoder"] = sequence("decoders", replace({{"String", "a"}}, "aa"), 40);
  const text::Tokenizer doubled = open_text(file);
  expect_error(ErrorKind::BadFile, {"(decoder)"}, [&] { doubled.decode({1}); });
  json fused = sequence("decoders", replace({{"String", "a"}}, "aa"), 40);
  fused["decoders"].insert(fused["decoders"].begin(), json{{"type", "Fuse"}});
  file["decoder"] = fused;
  const text::Tokenizer joined = open_text(file);
  expect_error(ErrorKind::BadFile, {"(decoder)"}, [&] { joined.decode({1}); });
}

// The text has the longest expansion in Unicode; the tokenizer has common components.
TEST(TokenizerLimits, AreFarAboveRealTokenizers) {
  json file = characters();
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {{{"type", "NFKC"}}, {{"type", "NFD"}}}}};
  const json pre[] = {{{"type", "ByteLevel"},
                       {"add_prefix_space", true},
                       {"trim_offsets", true},
                       {"use_regex", true}},
                      {{"type", "Metaspace"},
                       {"replacement", "\u2581"},
                       {"prepend_scheme", "always"},
                       {"split", true}}};
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "\uFDFA";
  for (const json& part : pre) {
    file["pre_tokenizer"] = part;
    EXPECT_GT(open_text(file).encode(text).size(), 0u);
    EXPECT_GT(open_text(file).encoding(text.substr(0, 30'000)).ids.size(), 0u);
  }
}

// Regression: each thread kept the scratch memory of a long text with guards, and that of a text
// that the normalizer made long.
TEST(TokenizerLimits, LongTextsLeaveNoScratchMemory) {
  json file = characters();
  file["normalizer"] = replace({{"String", "a"}}, "aaaaaaaaaaaaaaaa");
  const text::Tokenizer tokenizer = open_text(file);
  const auto allocated = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<int64_t>(info.uordblks + info.hblkhd);
  };
  tokenizer.encode("b", text::SpecialTokens::guarded);
  const int64_t before = allocated();
  const std::string growing = std::string(size_t{2} << 20, 'a') + std::string(64, 'b');
  for (const text::SpecialTokens special :
       {text::SpecialTokens::guarded, text::SpecialTokens::as_text}) {
    tokenizer.encode(growing, special);
    EXPECT_LT(allocated() - before, int64_t{24} << 20);
  }
}

// Errors quote only a part of a file's entry. Regression: error messages were 70 KB long.
TEST(TokenizerLimits, KeepErrorsShort) {
  const std::string large(60000, 'x');
  json file = characters();
  file["model"]["merges"] = {{"a", large}};
  try {
    open_text(file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 500u);
  }
}

// Hugging Face's models may produce a special token where its added token does not match, for
// example because the added token must stand alone. In fovea, text that must stay text never
// becomes a special token.
TEST(TokenizerLimits, ModelsProduceSpecialTokensOnlyIfParsed) {
  const auto special = [](int id, const char* text) {
    return json{{"id", id},
                {"content", text},
                {"special", true},
                {"single_word", true},
                {"normalized", false}};
  };
  json file = characters();
  file["added_tokens"] = {special(0, "<unk>"), special(1, "<s>")};
  file["model"] = json::parse(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0],
    ["<s>", 0.0], ["a", -2.0], ["b", -2.5], ["<", -3.0], ["s", -3.0], [">", -3.0]]})");
  const text::Tokenizer unigram = open_text(file);
  EXPECT_EQ(unigram.encode("a<unk>b", text::SpecialTokens::parsed), (Ids{2, 0, 3}));
  EXPECT_EQ(unigram.encode("a<s>b", text::SpecialTokens::parsed), (Ids{2, 1, 3}));
  EXPECT_EQ(unigram.encode("a<s>b"), (Ids{2, 4, 5, 6, 3}));
  EXPECT_EQ(unigram.encode(unigram.guarded("a<s>b"), text::SpecialTokens::guarded),
            (Ids{2, 4, 5, 6, 3}));
  const text::EncodingOptions parsed{.special = text::SpecialTokens::parsed};
  EXPECT_EQ(unigram.encoding("a<s>b", parsed).ids, (Ids{2, 1, 3}));
  EXPECT_EQ(unigram.encoding("a<s>b").ids, (Ids{2, 4, 5, 6, 3}));

  file["added_tokens"] = {special(0, "[UNK]"), special(1, "[CLS]")};
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["model"] = json::parse(R"({"type": "WordPiece", "unk_token": "[UNK]",
    "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {"[UNK]": 0, "[CLS]": 1, "a": 2, "##a": 3, "[": 4, "##b": 5}})");
  const text::Tokenizer pieces = open_text(file);
  EXPECT_EQ(pieces.encode("[CLS]a", text::SpecialTokens::parsed), (Ids{1, 3}));
  EXPECT_EQ(pieces.encode("a[CLS]", text::SpecialTokens::parsed), (Ids{0}));
  EXPECT_EQ(pieces.encode("[CLS]a"), (Ids{0}));
}

}  // namespace
}  // namespace fovea
