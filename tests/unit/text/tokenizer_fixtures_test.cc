// Tokenizers and what Hugging Face makes of the same texts: ids, tokens, places and decodings.

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "fovea/tokenizer.h"
#include "shared_folder.h"

namespace fovea {
namespace {

std::vector<Offsets> listed_offsets(const nlohmann::json& list) {
  std::vector<Offsets> offsets;
  for (const auto& pair : list) offsets.push_back({pair[0], pair[1]});
  return offsets;
}

void expect_line(const Tokenizer& tokenizer, const nlohmann::json& expected) {
  const auto text = expected["text"].get<std::string>();
  SCOPED_TRACE(expected["text"].dump());
  const Encoding encoding = tokenizer.encoding(text, {.special = SpecialTokens::parsed});
  EXPECT_EQ(encoding.ids, expected["ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(encoding.tokens, expected["tokens"].get<std::vector<std::string>>());
  EXPECT_EQ(encoding.offsets, listed_offsets(expected["offsets"]));
  const auto plain = expected["ids_plain"].get<std::vector<int32_t>>();
  EXPECT_EQ(tokenizer.encode(text, SpecialTokens::parsed), plain);
  EXPECT_EQ(tokenizer.decode(encoding.ids, true), expected["decoded"].get<std::string>());
  EXPECT_EQ(tokenizer.decode(plain), expected["decoded_plain"].get<std::string>());
}

class Fixtures : public testing::TestWithParam<const char*> {};

TEST_P(Fixtures, AreWhatHuggingFaceMakesOfThem) {
  const std::string folder = shared(std::string("fixtures/tokenizers/") + GetParam());
  if (!is_folder(folder)) GTEST_SKIP() << folder << " is not there";
  const Tokenizer tokenizer = Tokenizer::open(folder);
  const std::string cases = read_file(folder + "/cases.jsonl");
  for (size_t begin = 0; begin < cases.size();) {
    const size_t end = cases.find('\n', begin);
    expect_line(tokenizer, nlohmann::json::parse(cases.substr(begin, end - begin)));
    begin = end + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Fixtures,
                         testing::Values("bert_cased_wordpiece", "bert_uncased_wordpiece",
                                         "gpt2_bytelevel_bpe", "llama2_spm_bpe", "llama3_bpe",
                                         "roberta_bytelevel_bpe", "t5_unigram"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fovea
