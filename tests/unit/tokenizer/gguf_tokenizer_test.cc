// Vocabularies of GGUF files: each kind is read and written again, and inconsistent ones are
// refused.

#include "tokenizer/formats/gguf_tokenizer.h"

#include <cstdlib>

#include "base/json.h"
#include "fovea/text/tokenizer.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

class GgufTokenizer : public testing::Test {
 protected:
  Tokenizer open(const GgufMetadata& metadata) {
    write_file_atomically(path, GgufImage(metadata, {}).pieces());
    return Tokenizer::open(path);
  }
  void refused(const GgufMetadata& metadata, std::initializer_list<std::string> parts,
               ErrorKind kind = ErrorKind::BadFile) {
    expect_error(kind, parts, [&] { open(metadata); });
  }

  TemporaryFolder folder;
  std::string path = folder / "model.gguf";
};

GgufMetadata pieces(const std::vector<std::string>& tokens, const std::vector<float>& scores,
                    const std::vector<int32_t>& types) {
  GgufMetadata metadata;
  metadata.text("tokenizer.ggml.model", "llama");
  metadata.texts("tokenizer.ggml.tokens", tokens);
  metadata.numbers("tokenizer.ggml.scores", scores);
  metadata.integers("tokenizer.ggml.token_type", types);
  metadata.integer("tokenizer.ggml.bos_token_id", 1);
  metadata.integer("tokenizer.ggml.eos_token_id", 2);
  return metadata;
}

GgufMetadata five_pieces() {
  return pieces({"<unk>", "<s>", "</s>", "<0x41>", "▁", "a", "b", "▁a", "ab"},
                {0, 0, 0, 0, -9, -9, -9, -1, -2}, {2, 3, 3, 6, 1, 1, 1, 1, 1});
}

TEST_F(GgufTokenizer, MergesPiecesByScore) {
  const Tokenizer tokenizer = open(five_pieces());
  EXPECT_EQ(tokenizer.encode("ab"), (std::vector<int32_t>{7, 6}));  // ▁a is merged before ab
  EXPECT_EQ(tokenizer.encoding("ab").ids, (std::vector<int32_t>{1, 7, 6}));
  EXPECT_EQ(tokenizer.encode("A"), (std::vector<int32_t>{4, 3}));  // as bytes
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_TRUE(tokenizer.is_special(1));
}

TEST_F(GgufTokenizer, SupportsPiecesWithoutPrefixAndStart) {
  GgufMetadata metadata = five_pieces();
  metadata.boolean("tokenizer.ggml.add_space_prefix", false);
  metadata.boolean("tokenizer.ggml.add_bos_token", false);
  metadata.boolean("tokenizer.ggml.add_eos_token", true);
  const Tokenizer tokenizer = open(metadata);
  EXPECT_EQ(tokenizer.encode("ab"), std::vector<int32_t>{8});
  EXPECT_EQ(tokenizer.encoding("ab").ids, (std::vector<int32_t>{8, 2}));
}

GgufMetadata bytes(const char* pre) {
  GgufMetadata metadata;
  metadata.text("tokenizer.ggml.model", "gpt2");
  metadata.text("tokenizer.ggml.pre", pre);
  metadata.texts("tokenizer.ggml.tokens", {"<|begin|>", "<|end|>", "a", "b", "Ġ", "1", "ab", "11"});
  metadata.texts("tokenizer.ggml.merges", {"a b", "1 1"});
  metadata.integers("tokenizer.ggml.token_type", {3, 3, 1, 1, 1, 1, 1, 1});
  metadata.integer("tokenizer.ggml.bos_token_id", 0);
  metadata.integer("tokenizer.ggml.eos_token_id", 1);
  return metadata;
}

TEST_F(GgufTokenizer, SelectsTheSplitOfByteLevelBpe) {
  EXPECT_EQ(open(bytes("gpt-2")).encode("ab 11"), (std::vector<int32_t>{6, 4, 7}));
  EXPECT_EQ(open(bytes("gpt-2")).encoding("ab").ids, std::vector<int32_t>{6});
  EXPECT_EQ(open(bytes("qwen2")).encode("11"), (std::vector<int32_t>{5, 5}));  // digit by digit
  EXPECT_EQ(open(bytes("smollm")).encode("11"), (std::vector<int32_t>{5, 5}));
  EXPECT_EQ(open(bytes("llama-bpe")).encode("11"), std::vector<int32_t>{7});
  EXPECT_EQ(open(bytes("llama-bpe")).encoding("ab").ids, (std::vector<int32_t>{0, 6}));
  EXPECT_EQ(open(bytes("llama-bpe")).encode("<|end|>", SpecialTokens::parsed),
            std::vector<int32_t>{1});
}

TEST_F(GgufTokenizer, KnowsThePublishedNames) {
  for (const char* name :
       {"deepseek-v3", "deepseek-coder",  "hunyuan-dense", "joyai-llm",  "qwen35",   "bailingmoe2",
        "llada-moe",   "seed-coder",      "exaone-moe",    "ufakzeka",   "minicpm5", "jais",
        "jais-2",      "laguna",          "grok-2",        "solar-open", "kanana2",  "minimax-m2",
        "midm-2.0",    "granite-docling", "mellum2"})
    EXPECT_EQ(open(bytes(name)).encode("ab").size(), 1) << name;
  EXPECT_EQ(open(bytes("deepseek-v3")).encode("11"), std::vector<int32_t>{7});
  EXPECT_EQ(open(bytes("deepseek-coder")).encode("11"), (std::vector<int32_t>{5, 5}));
  expect_error(ErrorKind::Unsupported, {"tokenizer.ggml.pre is \"superbpe\""},
               [&] { open(bytes("superbpe")); });
}

TEST_F(GgufTokenizer, SupportsWordPiece) {
  GgufMetadata metadata;
  metadata.text("tokenizer.ggml.model", "bert");
  metadata.texts("tokenizer.ggml.tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁ab", "c"});
  metadata.integers("tokenizer.ggml.token_type", {3, 2, 3, 3, 1, 1});
  const Tokenizer tokenizer = open(metadata);
  EXPECT_EQ(tokenizer.encoding("ABc").ids, (std::vector<int32_t>{2, 4, 5, 3}));
}

TEST_F(GgufTokenizer, AccentsMayStay) {
  GgufMetadata metadata;
  metadata.text("tokenizer.ggml.model", "bert");
  metadata.texts("tokenizer.ggml.tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁e", "▁é"});
  metadata.integers("tokenizer.ggml.token_type", {3, 2, 3, 3, 1, 1});
  EXPECT_EQ(open(metadata).encode("É"), std::vector<int32_t>{4});
  metadata.boolean("tokenizer.ggml.normalizer.strip_accents", false);
  EXPECT_EQ(open(metadata).encode("É"), std::vector<int32_t>{5});
}

// As of XLM-RoBERTa, whose pairs have one start token and two tokens between the texts.
TEST_F(GgufTokenizer, PairsOfEncodersHaveASeparator) {
  const auto pair = [&](bool encoder, bool separated) {
    GgufMetadata unigram;
    unigram.text("general.architecture", "bert");
    if (encoder) unigram.boolean("bert.attention.causal", false);
    unigram.text("tokenizer.ggml.model", "t5");
    unigram.texts("tokenizer.ggml.tokens", {"<s>", "<pad>", "</s>", "<unk>", "▁a"});
    unigram.numbers("tokenizer.ggml.scores", {0, 0, 0, 0, -1});
    unigram.integers("tokenizer.ggml.token_type", {3, 3, 3, 2, 1});
    for (const auto& [name, id] :
         {std::pair("bos", 0u), {"eos", 2u}, {"seperator", 2u}, {"unknown", 3u}})
      unigram.integer(fmt::format("tokenizer.ggml.{}_token_id", name), id);
    unigram.boolean("tokenizer.ggml.add_bos_token", true);
    if (separated) unigram.boolean("tokenizer.ggml.add_sep_token", true);
    return open(unigram).encoding("a", "a", {}).ids;
  };
  EXPECT_EQ(pair(true, true), (std::vector<int32_t>{0, 4, 2, 2, 4, 2}));
  EXPECT_EQ(pair(true, false), (std::vector<int32_t>{0, 4, 2, 4, 2}));
  EXPECT_EQ(pair(false, true), (std::vector<int32_t>{0, 4, 2, 0, 4, 2}));
}

TEST_F(GgufTokenizer, RefusesInvalidVocabularies) {
  GgufMetadata metadata;
  refused(metadata, {"model.gguf: it has no vocabulary (tokenizer.ggml.model)"});
  metadata.text("tokenizer.ggml.model", "rwkv");
  refused(metadata, {"model.gguf: tokenizer.ggml.tokens is missing"});
  metadata.texts("tokenizer.ggml.tokens", {"a", "b"});
  refused(metadata, {"tokenizer.ggml.model is \"rwkv\"; expected llama, gpt2, t5 or bert"},
          ErrorKind::Unsupported);
  refused(bytes("new-idea"), {"tokenizer.ggml.pre is \"new-idea\"; expected gpt-2, llama-bpe"},
          ErrorKind::Unsupported);
  refused(pieces({"a", "\xff"}, {0, 0}, {1, 1}),
          {"tokenizer.ggml.tokens[1] is not UTF-8 (byte 0)"});
  refused(
      pieces({"a", "b"}, {0}, {1, 1}),
      {"tokenizer.ggml.scores has 1 elements; expected 2, the number of tokenizer.ggml.tokens"});
  refused(pieces({"a", "b"}, {0, 0}, {1}), {"tokenizer.ggml.token_type has 1 elements"});
  refused(pieces({"a", "a"}, {0, 0}, {1, 1}), {"contains \"a\" twice (pieces"});
  refused(pieces({}, {}, {}), {"tokenizer.ggml.tokens is empty"});
  GgufMetadata merges = GgufMetadata();
  merges.text("tokenizer.ggml.model", "gpt2");
  merges.text("tokenizer.ggml.pre", "gpt-2");
  merges.texts("tokenizer.ggml.tokens", {"a"});
  refused(merges, {"tokenizer.ggml.merges is missing"});
  merges.texts("tokenizer.ggml.merges", {"aa"});
  refused(merges, {"tokenizer.ggml.merges[0] is \"aa\"; expected two tokens separated by a space"});
}

// Opens fixtures from the keys that llama.cpp reads, without the embedded tokenizer.json.
class GgufTokenizerFixtures : public testing::TestWithParam<const char*> {};

TEST_P(GgufTokenizerFixtures, RoundTrip) {
  const std::string source = shared(std::string("fixtures/tokenizers/") + GetParam());
  if (!is_folder(source)) GTEST_SKIP() << source << " is missing";
  const Tokenizer before = Tokenizer::open(source);
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  GgufMetadata metadata;
  write_tokenizer(metadata, before.state().files, before.size());
  write_file_atomically(path, GgufImage(metadata, {}).pieces());
  const Tokenizer after = Tokenizer::open(path);
  EXPECT_EQ(after.size(), before.size());
  const std::string cases = read_file(source + "/cases.jsonl");
  for (size_t begin = 0; begin < cases.size();) {
    const size_t end = cases.find('\n', begin);
    const auto expected = nlohmann::json::parse(cases.substr(begin, end - begin));
    const auto text = expected["text"].get<std::string>();
    EXPECT_EQ(after.encoding(text, {.special = SpecialTokens::parsed}).ids,
              expected["ids"].get<std::vector<int32_t>>())
        << expected["text"].dump();
    begin = end + 1;
  }
}
INSTANTIATE_TEST_SUITE_P(Tokenizers, GgufTokenizerFixtures,
                         testing::Values("gpt2_bytelevel_bpe", "llama2_spm_bpe", "llama3_bpe",
                                         "t5_unigram", "bert_uncased_wordpiece"));

}  // namespace
}  // namespace fovea::text
