// Hard negatives, compared with those of sentence-transformers
// (tools/goldens/make_embedder_losses.py).

#include "fovea/infer/mine_negatives.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/json.h"
#include "base/threads.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

class MineNegatives : public testing::Test {
 protected:
  MineNegatives() {
    for (const nlohmann::json& each : read_json("tests/goldens/embedder_losses/mined.json"))
      goldens_.push_back(each);
    // The second anchor has two positives.
    write_file_atomically(folder_ / "pairs.jsonl",
                          read_file("tests/goldens/embedder_losses/pairs.jsonl") +
                              R"({"anchor": "the eye", "positive": "the day and the eye"})" + "\n");
    options_.pairs = folder_ / "pairs.jsonl";
    options_.corpus = goldens_.at(0)["corpus"].get<std::vector<std::string>>();
  }
  MinedNegatives mine() const { return mine_negatives(model_, options_); }
  void refuse(ErrorKind kind, std::initializer_list<std::string> parts) const {
    expect_error(kind, parts, [&] { mine(); });
  }

  const Embedder model_ = Embedder::open("tests/goldens/sentence_model");
  TemporaryFolder folder_;
  std::vector<nlohmann::json> goldens_;
  MiningOptions options_;
};

TEST_F(MineNegatives, FindsThoseOfSentenceTransformers) {
  const Reranker judge = Reranker::open("tests/goldens/cross_encoder");
  for (const nlohmann::json& golden : goldens_) {
    const nlohmann::json& given = golden["options"];
    MiningOptions o = options_;
    o.negatives = given["negatives"];
    o.range_min = given.value("range_min", 0);
    o.range_max = given.value("range_max", 0);
    if (given.contains("margin")) o.margin = given["margin"].get<double>();
    if (given.contains("relative_margin"))
      o.relative_margin = given["relative_margin"].get<double>();
    if (given.contains("max_score")) o.max_score = given["max_score"].get<double>();
    if (given.contains("rerank"))
      o.reranker = [&](const std::string& query, const std::vector<std::string>& texts) {
        return judge.score(query, texts);
      };
    const MinedNegatives mined = mine_negatives(model_, o);
    const nlohmann::json& rows = golden["rows"];
    ASSERT_EQ(mined.pairs.size(), rows.size()) << given;
    EXPECT_EQ(mined.incomplete, 7 - std::ssize(rows)) << given;
    for (size_t i = 0; i < rows.size(); ++i) {
      const MinedPair& pair = mined.pairs[i];
      EXPECT_EQ(pair.anchor, rows[i]["anchor"].get<std::string>()) << given;
      EXPECT_EQ(pair.positive, rows[i]["positive"].get<std::string>()) << given;
      const auto scores = rows[i]["scores"].get<std::vector<float>>();
      ASSERT_EQ(pair.scores.size(), scores.size());
      for (size_t j = 0; j < scores.size(); ++j) {
        EXPECT_NEAR(pair.scores[j], scores[j], 1e-5) << given;
        if (j > 0) {
          EXPECT_EQ(pair.negatives[j - 1],
                    rows[i]["negative_" + std::to_string(j)].get<std::string>())
              << given << " row " << i;
        }
      }
    }
  }
}

TEST_F(MineNegatives, CountsWhatIsLeftOut) {
  options_.max_score = -2;
  const MinedNegatives none = mine();
  EXPECT_TRUE(none.pairs.empty());
  EXPECT_EQ(none.incomplete, 7);
  EXPECT_GT(none.by_max_score, 0);
  EXPECT_EQ(none.by_margin + none.by_relative_margin, 0);
}

TEST_F(MineNegatives, ChoosesAtRandomInTheRange) {
  options_.negatives = options_.range_max = 9;
  const MinedNegatives all = mine();
  options_.negatives = 3;
  options_.sampling = NegativeSampling::random;
  const MinedNegatives some = mine();
  const int before = thread_count();
  set_threads(1);
  const MinedNegatives again = mine();
  set_threads(before);
  options_.seed = 5;
  const MinedNegatives other = mine();
  bool differs = false, skips = false;
  for (size_t i = 0; i < all.pairs.size(); ++i) {
    const std::vector<std::string>&range = all.pairs[i].negatives, &found = some.pairs[i].negatives;
    const std::set<std::string> distinct(found.begin(), found.end());
    EXPECT_EQ(distinct.size(), 3u);
    for (const std::string& text : found)
      EXPECT_NE(std::find(range.begin(), range.end(), text), range.end());
    EXPECT_TRUE(std::is_sorted(some.pairs[i].scores.begin() + 1, some.pairs[i].scores.end(),
                               std::greater<>()));
    EXPECT_EQ(found, again.pairs[i].negatives);
    differs = differs || found != other.pairs[i].negatives;
    skips = skips || found[0] != range[0];
  }
  EXPECT_TRUE(differs);
  EXPECT_TRUE(skips);
}

TEST_F(MineNegatives, RefusesInvalidRequests) {
  options_.range_min = 4;
  options_.range_max = 6;
  refuse(ErrorKind::InvalidArgument, {"negatives: 3, but the range has 2 ranks"});
  options_.range_min = options_.range_max = 0;
  options_.negatives = 0;
  refuse(ErrorKind::InvalidArgument, {"negatives: 0; expected 1 to"});
  options_.negatives = 1;
  options_.pairs = "tests/goldens/embedder_losses/scored.jsonl";
  refuse(ErrorKind::BadFile, {"scored.jsonl: has scored pairs; expected pairs of related texts"});
  options_.pairs = folder_ / "none";
  refuse(ErrorKind::BadFile, {"none"});
  options_.pairs = folder_ / "pairs.jsonl";
  const auto stop = [](double) { return false; };
  expect_error(ErrorKind::Failed, {"stopped"}, [&] { mine_negatives(model_, options_, stop); });
}

}  // namespace
}  // namespace fovea::infer
