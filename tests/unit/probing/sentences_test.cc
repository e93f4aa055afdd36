// Sets of sentences: what their names of columns measure, and errors.

#include <algorithm>

#include "base/files.h"
#include "fovea/study/evaluate_sentences.h"
#include "probing/sentence_sets.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::study {
namespace {

class Sentences : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }
  SentenceEvaluation evaluate(const std::vector<std::string>& files) const {
    return evaluate_sentences(embedder_, {files, 100, 1});
  }
  void refused(const std::string& text, std::initializer_list<std::string> parts) const {
    const std::string path = file("refused", text);
    expect_error(ErrorKind::BadFile, parts, [&] { evaluate({path}); });
  }

  TemporaryFolder folder_;
  infer::Embedder embedder_ = infer::Embedder::open("tests/goldens/sentence_model");
};

double value(const SentenceScores& scores, const std::string& name) {
  for (const auto& [each, estimate] : scores.metrics) {
    EXPECT_LE(estimate.low, estimate.high);
    if (each == name) return estimate.value;
  }
  ADD_FAILURE() << name;
  return -1;
}

TEST_F(Sentences, AreMeasuredByTheirNamesOfColumns) {
  const std::string scored = file("scored.tsv",
                                  "sentence1\tsentence2\tscore\nthe fox\tthe fox\t5\n"
                                  "the fox\tlight\t1\nnight\tnever\t0\n");
  std::string topics;
  for (int i = 0; i < 20; ++i)
    topics += i % 2 == 0 ? "{\"text\": \"the fox sees the bird\", \"label\": \"animals\"}\n"
                         : "{\"text\": \"night\", \"label\": 7}\n";
  const std::string labels = file("topics.jsonl", topics);
  const std::string pairs =
      file("pairs.jsonl",
           "{\"sentence1\": \"the fox\", \"sentence2\": \"the fox\", \"label\": 1}\n"
           "{\"sentence1\": \"night\", \"sentence2\": \"night\", \"labels\": true}\n"
           "{\"sentence1\": \"night\", \"sentence2\": \"the bird\", \"label\": 0}\n");
  const std::string translations =
      file("translations.csv", "sentence2,sentence1\nthe fox,the fox\nlight,light\nnight,night\n");
  const SentenceEvaluation found = evaluate({scored, labels, pairs, translations});
  std::vector<std::string> tasks;
  for (const SentenceScores& each : found.scores) tasks.push_back(each.task);
  EXPECT_EQ(tasks, (std::vector<std::string>{"similarity", "clusters", "labels", "pairs",
                                             "translations"}));
  EXPECT_EQ(found.scores[0].records, 3);
  EXPECT_EQ(value(found.scores[1], "v_measure"), 1);
  EXPECT_EQ(value(found.scores[2], "accuracy"), 1);
  EXPECT_EQ(value(found.scores[2], "f1"), 1);
  EXPECT_EQ(value(found.scores[3], "average_precision"), 1);
  EXPECT_EQ(value(found.scores[3], "f1"), 1);
  EXPECT_EQ(value(found.scores[3], "accuracy"), 1);
  EXPECT_EQ(value(found.scores[4], "f1"), 1);
  // The same correlations as those of evaluate_similarity(), which are in percent.
  for (const auto& [name, percent] : infer::evaluate_similarity(embedder_, scored).metrics)
    EXPECT_NEAR(100 * value(found.scores[0], name), percent, 1e-10) << name;
}

TEST_F(Sentences, NameTheInvalidRecord) {
  refused("a\tb\n", {"refused: has no names of columns", "sentence1, sentence2"});
  refused("text\tscore\nx\t1\n", {"refused:2: has other names; expected sentence1"});
  refused("sentence1\tsentence2\tscore\tlabel\na\tb\t1\t1\n", {"refused:2: has other names"});
  refused("{\"text\": \"a\", \"label\": \"x\"}\n{\"sentence1\": \"a\", \"sentence2\": \"b\"}\n",
          {"refused:2: has other names than the first record"});
  refused("sentence1\tsentence2\tscore\na\tb\t1\na\tb\thigh\n",
          {"refused:3: score is \"high\"; expected a number"});
  refused("sentence1\tsentence2\tlabel\na\tb\t1\na\tb\t2\n",
          {"refused:3: label is \"2\"; expected 0 or 1"});
  refused("sentence1\tsentence2\tlabel\na\tb\t1\nc\td\t1\n", {"all records have the same label"});
  refused("sentence1\tsentence2\na\tb\n", {"refused: 1 records; expected at least 2"});
  refused("text\tlabel\na\tx\nb\ty\n", {"refused: 2 records; expected at least 10"});
}

}  // namespace
}  // namespace fovea::study
