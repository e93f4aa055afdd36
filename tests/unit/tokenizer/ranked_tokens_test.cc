#include "tokenizer/formats/ranked_tokens.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "fovea/text/tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

TEST(RankedTokens, GiveTheMergesOfTheTokenizer) {
  const nlohmann::json original = read_json("tests/goldens/speech/model/tokenizer.json");
  const Tokenizer tokenizer = Tokenizer::open("tests/goldens/speech/model");
  nlohmann::json list = nlohmann::json::array();
  for (int32_t id = 0; id < tokenizer.size(); ++id)
    list.push_back(std::string(tokenizer.text_of(id)));
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocabulary.json", list.dump());
  const TokenizerFiles files = tokenizer_of_ranks(token_list(folder / "vocabulary.json"));
  const nlohmann::json merges = nlohmann::json::parse(files.tokenizer).at("model").at("merges");
  ASSERT_EQ(merges.size(), original.at("model").at("merges").size());
  for (size_t i = 0; i < merges.size(); ++i)
    EXPECT_EQ(merges[i][0].get<std::string>() + " " + merges[i][1].get<std::string>(),
              original.at("model").at("merges")[i].get<std::string>());
  const Tokenizer opened = Tokenizer::open(folder.path());
  const std::string text = " the wind and rain, außen... on";
  EXPECT_EQ(opened.encode(text), tokenizer.encode(text));
  EXPECT_TRUE(opened.is_special(*opened.id_of("<|startoftranscript|>")));
}

// Releases of CTranslate2 before 3.16 wrote one token in each line.
TEST(RankedTokens, AreTheLinesOfAText) {
  const TemporaryFolder folder;
  EXPECT_EQ(token_list_path(folder.path()), folder.path() + "/vocabulary.json");
  write_file_atomically(folder / "vocabulary.txt", "a\n\nĠb\r\n<|endoftext|>\n");
  EXPECT_EQ(token_list_path(folder.path()), folder.path() + "/vocabulary.txt");
  EXPECT_EQ(token_list(folder / "vocabulary.txt"),
            (std::vector<std::string>{"a", "", "Ġb\r", "<|endoftext|>"}));
  EXPECT_EQ(Tokenizer::open(folder.path()).size(), 4);
  write_file_atomically(folder / "vocabulary.txt", "a\n\xFF\n");
  expect_error(ErrorKind::BadFile, {"vocabulary.txt: is not UTF-8 (byte 2)"},
               [&] { token_list(folder / "vocabulary.txt"); });
}

TEST(RankedTokens, NamesOfSpecialTokens) {
  EXPECT_TRUE(is_special_name("<|de|>"));
  EXPECT_FALSE(is_special_name("<|>"));
  EXPECT_FALSE(is_special_name("de"));
  EXPECT_TRUE(is_time_name("<|0.00|>"));
  EXPECT_FALSE(is_time_name("<|en|>"));
}

}  // namespace
}  // namespace fovea::text
