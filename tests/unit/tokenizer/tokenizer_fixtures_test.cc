// Compares ids, tokens, offsets and decoded texts with those of Hugging Face's tokenizers.

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/shared_folder.h"
#include "unit/tokenizer/tokenizer_cases.h"

namespace fovea::text {
namespace {

class TokenizerFixtures : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerFixtures, MatchHuggingFace) {
  const std::string folder = shared(std::string("fixtures/tokenizers/") + GetParam());
  if (!is_folder(folder)) GTEST_SKIP() << folder << " is missing";
  const Tokenizer tokenizer = Tokenizer::open(folder);
  const std::string cases = read_file(folder + "/cases.jsonl");
  for (size_t begin = 0; begin < cases.size();) {
    const size_t end = cases.find('\n', begin);
    expect_case(tokenizer, nlohmann::json::parse(cases.substr(begin, end - begin)));
    begin = end + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TokenizerFixtures,
                         testing::Values("bert_cased_wordpiece", "bert_uncased_wordpiece",
                                         "gpt2_bytelevel_bpe", "llama2_spm_bpe", "llama3_bpe",
                                         "roberta_bytelevel_bpe", "t5_unigram"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fovea::text
