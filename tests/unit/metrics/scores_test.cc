// Compares BLEU, chrF, chrF++ and TER with those of sacrebleu, and ROUGE with that of Google's
// rouge-score (tools/goldens/make_scores.py).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "fovea/infer/translation_scores.h"
#include "metrics/bleu.h"
#include "metrics/rouge.h"
#include "metrics/ter.h"
#include "metrics/words.h"

namespace fovea::infer {
namespace {

nlohmann::json goldens() {
  std::ifstream file("tests/goldens/scores.json");
  EXPECT_TRUE(file) << "run from the project's root";
  return nlohmann::json::parse(file);
}

constexpr std::pair<const char*, BleuTokenizer> kTokenizers[] = {
    {"13a", BleuTokenizer::mteval_13a},
    {"zh", BleuTokenizer::zh},
    {"char", BleuTokenizer::characters},
    {"none", BleuTokenizer::none}};

TEST(Scores, TokeniseLikeSacrebleu) {
  const nlohmann::json all = goldens();  // must outlive the loop
  for (const auto& line : all.at("words"))
    for (const auto& [name, tokenizer] : kTokenizers) {
      const auto words = words_of(line.at(name).get_ref<const std::string&>());
      const std::string ours = tokenized(line["text"].get<std::string>(), tokenizer);
      EXPECT_EQ(words_of(ours), words) << name << ": " << line["text"];
    }
}

TEST(Scores, MatchSacrebleuAndRougeScore) {
  const nlohmann::json all = goldens();  // must outlive the loop
  for (const auto& corpus : all.at("corpora")) {
    const auto hypotheses = corpus["hypotheses"].get<std::vector<std::string>>();
    const auto references = corpus["references"].get<std::vector<std::string>>();
    for (const auto& [name, tokenizer] : kTokenizers) {
      const MetricValues values = score_translations(hypotheses, references, tokenizer);
      ASSERT_EQ(values.size(), 7u);
      for (const auto& [metric, value] : values) {
        const std::string key = metric == "bleu" ? metric + "_" + name : metric;
        EXPECT_NEAR(value, corpus.at(key).get<double>(), 1e-9) << key << ": " << hypotheses.front();
      }
    }
  }
}

TEST(Scores, HaveTheSignaturesOfSacrebleu) {
  const std::vector<Metric> metrics = translation_metrics(BleuTokenizer::zh);
  EXPECT_TRUE(metrics[0].signature.starts_with("nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp"));
  EXPECT_TRUE(metrics[2].signature.starts_with("nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no"));
  EXPECT_TRUE(
      metrics[3].signature.starts_with("nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no"));
  EXPECT_FALSE(metrics[3].greater_is_better);
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
  EXPECT_EQ(Ter().score(), 0);
  EXPECT_EQ(MeanRouge<&Rouge::l>().score(), 0);
}

TEST(Words, AreSeparatedByUnicodeSpaces) {
  EXPECT_EQ(words_of(" a\u00a0b\u3000\tc\x85 "),
            (std::vector<std::string_view>{"a", "b", "c\x85"}));  // a single byte is not a space
  EXPECT_TRUE(words_of("").empty());
  EXPECT_EQ(characters_of("aé日\xff"), (std::vector<std::string_view>{"a", "é", "日", "\xff"}));
}

}  // namespace
}  // namespace fovea::infer
