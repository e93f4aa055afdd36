#include "tokenizer/formats/ranked_tokens.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "fovea/tokenizer.h"
#include "support/temporary_folder.h"

namespace fovea {
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

TEST(RankedTokens, NamesOfSpecialTokens) {
  EXPECT_TRUE(is_special_name("<|de|>"));
  EXPECT_FALSE(is_special_name("<|>"));
  EXPECT_FALSE(is_special_name("de"));
  EXPECT_TRUE(is_time_name("<|0.00|>"));
  EXPECT_FALSE(is_time_name("<|en|>"));
}

}  // namespace
}  // namespace fovea
