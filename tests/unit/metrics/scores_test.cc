// Compares BLEU and chrF with those of sacrebleu, and ROUGE-L with that of Google's rouge-score
// (tools/goldens/make_scores.py).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "metrics/bleu.h"
#include "metrics/rouge.h"
#include "metrics/words.h"

namespace fovea::infer {
namespace {

nlohmann::json goldens() {
  std::ifstream file("tests/goldens/scores.json");
  EXPECT_TRUE(file) << "run from the project's root";
  return nlohmann::json::parse(file);
}

TEST(Scores, TokeniseLikeSacrebleu) {
  const nlohmann::json all = goldens();  // must outlive the loop
  for (const auto& line : all.at("words")) {
    EXPECT_EQ(tokenized_13a(line["text"].get<std::string>()), line["tokenized"].get<std::string>())
        << line["text"];
  }
}

TEST(Scores, MatchSacrebleuAndRougeScore) {
  const nlohmann::json all = goldens();  // must outlive the loop
  for (const auto& corpus : all.at("corpora")) {
    Bleu bleu;
    Chrf chrf;
    RougeL rouge;
    for (size_t i = 0; i < corpus["hypotheses"].size(); ++i) {
      const auto ours = corpus["hypotheses"][i].get<std::string>();
      const auto theirs = corpus["references"][i].get<std::string>();
      bleu.add(ours, theirs);
      chrf.add(ours, theirs);
      rouge.add(ours, theirs);
    }
    EXPECT_NEAR(bleu.score(), corpus.at("bleu").get<double>(), 1e-9) << corpus["hypotheses"];
    EXPECT_NEAR(chrf.score(), corpus.at("chrf").get<double>(), 1e-9) << corpus["hypotheses"];
    EXPECT_NEAR(rouge.score(), corpus.at("rouge_l").get<double>(), 1e-9) << corpus["hypotheses"];
  }
}

TEST(Scores, OfSummariesMatchRougeScore) {
  const nlohmann::json all = goldens();  // must outlive the loop
  for (const auto& pair : all.at("summaries")) {
    const Rouge found =
        rouge(pair["summary"].get<std::string>(), pair["reference"].get<std::string>());
    EXPECT_NEAR(found.one, pair["rouge1"].get<double>(), 1e-12) << pair;
    EXPECT_NEAR(found.two, pair["rouge2"].get<double>(), 1e-12) << pair;
    EXPECT_NEAR(found.l, pair["rougeL"].get<double>(), 1e-12) << pair;
    EXPECT_NEAR(found.lsum, pair["rougeLsum"].get<double>(), 1e-12) << pair;
  }
}

TEST(Scores, AreZeroForEmptyTexts) {
  EXPECT_EQ(Bleu().score(), 0);
  EXPECT_EQ(Chrf().score(), 0);
  EXPECT_EQ(RougeL().score(), 0);
}

TEST(Words, AreSeparatedByUnicodeSpaces) {
  EXPECT_EQ(words_of(" a\u00a0b\u3000\tc\x85 "),
            (std::vector<std::string_view>{"a", "b", "c\x85"}));  // a single byte is not a space
  EXPECT_TRUE(words_of("").empty());
  EXPECT_EQ(characters_of("aé日\xff"), (std::vector<std::string_view>{"a", "é", "日", "\xff"}));
}

}  // namespace
}  // namespace fovea::infer
