#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "fovea/text/tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

const std::string kFolder = "tests/goldens/translation_tokenizers";
using Ids = std::vector<int32_t>;

// Compares with the goldens; names of special tokens in the text are parsed.
void expect_goldens(const TranslationTokenizers& tokenizers) {
  const nlohmann::json goldens = read_json(kFolder + "/cases.json");
  const EncodingOptions options{.special = SpecialTokens::parsed};
  for (const auto& each : goldens["cases"]) {
    const std::string text = each["text"];
    SCOPED_TRACE(text);
    EXPECT_EQ(tokenizers.source.encoding(text, options).ids, each["source"].get<Ids>());
    const Ids ids = tokenizers.target.encoding(text, options).ids;
    EXPECT_EQ(ids, each["target"].get<Ids>());
    EXPECT_EQ(tokenizers.target.decode(ids, true), each["decoded"].get<std::string>());
    EXPECT_EQ(tokenizers.source.decode(ids, true), each["decoded"].get<std::string>());
  }
}

TEST(TranslationTokenizersTest, MatchTransformers) {
  expect_goldens(TranslationTokenizers::open(kFolder));
}

TEST(TranslationTokenizersTest, SaveTheFilesTheyWereReadFrom) {
  const TemporaryFolder folder;
  Tokenizer::open(kFolder).save(folder.path());
  EXPECT_FALSE(is_file(folder / "tokenizer.json"));
  for (const char* name : {"source.spm", "target.spm", "vocab.json", "tokenizer_config.json"})
    EXPECT_EQ(read_file(folder / name), read_file(kFolder + "/" + name)) << name;
  expect_goldens(TranslationTokenizers::open(folder.path()));
}

TEST(TranslationTokenizersTest, AreTheSameInOtherFolders) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  const TranslationTokenizers both = TranslationTokenizers::open(folder.path());
  EXPECT_EQ(both.source.encode("a"), both.target.encode("a"));
}

TEST(TranslationTokenizersTest, MayHaveSeparateVocabularies) {
  const TemporaryFolder folder;
  Tokenizer::open(kFolder).save(folder.path());
  write_file_atomically(folder / "target_vocab.json",
                        R"({"</s>": 0, "<unk>": 1, "e": 2, "▁": 3, "<pad>": 4})");
  const TranslationTokenizers apart = TranslationTokenizers::open(folder.path());
  EXPECT_EQ(apart.target.size(), 5);
  EXPECT_EQ(apart.target.encoding("e").ids, (Ids{3, 2, 0}));
  EXPECT_GT(apart.source.size(), 100);
}

TEST(TranslationTokenizersTest, NameMissingEntries) {
  const TemporaryFolder folder;
  Tokenizer::open(kFolder).save(folder.path());
  const auto open = [&] { TranslationTokenizers::open(folder.path()); };
  write_file_atomically(folder / "vocab.json", R"({"</s>": 0, "<unk>": 1, "▁": 2})");
  expect_error(ErrorKind::BadFile, {"vocab.json: lacks", "<pad>", "pad_token"}, open);
  write_file_atomically(folder / "vocab.json", "[]");
  expect_error(ErrorKind::BadFile, {"vocab.json", "an object that maps tokens to ids"}, open);
  std::filesystem::remove(folder / "target.spm");
  expect_error(ErrorKind::BadFile, {"target.spm"}, open);
}

}  // namespace
}  // namespace fovea::text
