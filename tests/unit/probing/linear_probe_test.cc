// A linear probe of a small model: its vectors, layers and errors.

#include "fovea/study/linear_probe.h"

#include "base/threads.h"
#include "probing/probe_vectors.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::study {
namespace {

class LinearProbe : public testing::Test {
 protected:
  LinearProbe() {
    const char* const things[] = {"the fox", "the bird", "a light", "the night"};
    std::string text;
    for (int i = 0; i < 48; ++i)
      text += std::string(things[i % 4]) + (i % 3 == 0 ? " never" : "") +
              (i % 2 == 0 ? " hears the eye\tears\n" : " sees the fox\teyes\n");
    write_file_atomically(folder_ / "labels.tsv", text);
    options_.data = {folder_ / "labels.tsv"};
    options_.folds = 4;
    options_.cs = {1, 100};
  }
  ProbeResult probe() const {
    return linear_probe(infer::Embedder::open(folder_.path()), options_);
  }
  void refused(ErrorKind kind, std::initializer_list<std::string> texts) const {
    expect_error(kind, texts, [&] { probe(); });
  }
  void write(const std::string& text) const { write_file_atomically(folder_ / "labels.tsv", text); }
  std::vector<float> vectors(std::optional<int64_t> layer, ProbePooling pooling) const {
    return probe_vectors(infer::Embedder::open(folder_.path()), folder_.texts(), layer, pooling,
                         [](double) {})
        .values;
  }

  GoldenFolder folder_{"sentence_model"};
  ProbeOptions options_;
};

TEST_F(LinearProbe, MeasuresVectorsBesideTfIdf) {
  const ProbeResult r = probe();
  EXPECT_EQ(r.labels, (std::vector<std::string>{"ears", "eyes"}));
  EXPECT_EQ(r.labelled.size(), 48u);
  EXPECT_EQ(r.majority, 0.5);
  EXPECT_EQ(r.tfidf.accuracy.value, 1);  // a word tells the label
  ASSERT_EQ(r.vectors.size(), 1u);
  const ProbeScores& scores = r.vectors[0].scores;
  EXPECT_EQ(r.vectors[0].width, 10);
  EXPECT_EQ(scores.fold_scores.size(), 4u);
  EXPECT_LE(scores.accuracy.low, scores.accuracy.value);
  EXPECT_GE(scores.accuracy.high, scores.accuracy.value);
  EXPECT_NEAR(r.vectors[0].gain.value, scores.accuracy.value - 1, 1e-12);
  double right = 0;
  for (size_t i = 0; i < 48; ++i) right += scores.predicted[i] == r.labelled[i];
  EXPECT_EQ(scores.accuracy.value, right / 48);
}

TEST_F(LinearProbe, IsTheSameForAnyNumberOfThreads) {
  const int before = thread_count();
  set_threads(1);
  const ProbeResult one = probe();
  set_threads(3);
  const ProbeResult three = probe();
  set_threads(before);
  EXPECT_EQ(one.vectors[0].scores.predicted, three.vectors[0].scores.predicted);
  EXPECT_EQ(one.vectors[0].scores.accuracy.low, three.vectors[0].scores.accuracy.low);
  EXPECT_EQ(one.vectors[0].scores.c, three.vectors[0].scores.c);
}

TEST_F(LinearProbe, ReadsPairs) {
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += i % 2 == 0 ? "the fox sees\tthe fox sees\tsame\n" : "the fox sees\tnight\tother\n";
  write(text);
  const ProbeResult r = probe();
  EXPECT_EQ(r.vectors[0].scores.accuracy.value, 1);
  EXPECT_EQ(r.tfidf.accuracy.value, 1);
}

TEST_F(LinearProbe, PredictsNumbers) {
  std::string text;
  for (int i = 0; i < 48; ++i)
    text += i % 2 == 0 ? "the fox hears the eye\t2.5\n" : "a light sees\t-1\n";
  write(text);
  const ProbeResult r = probe();
  EXPECT_EQ(r.problem, model::ProblemType::regression);
  EXPECT_EQ(r.numbers[0], 2.5);
  EXPECT_GT(r.tfidf.r2.value, 0.99);
  EXPECT_GT(r.vectors[0].scores.r2.value, 0.9);
  EXPECT_GT(r.vectors[0].scores.pearson.value, 0.95);
  EXPECT_NEAR(r.vectors[0].gain.value, r.vectors[0].scores.r2.value - r.tfidf.r2.value, 1e-12);
  EXPECT_NEAR(r.vectors[0].scores.numbers[1], -1, 0.5);
}

TEST_F(LinearProbe, PredictsSeveralLabels) {
  std::string text;
  const char* const rows[] = {R"({"text": "the fox hears", "labels": ["ears", "animal"]})",
                              R"({"text": "a light sees", "labels": ["eyes"]})",
                              R"({"text": "the night", "labels": []})"};
  for (int i = 0; i < 48; ++i) text += std::string(rows[i % 3]) + "\n";
  write_file_atomically(folder_ / "sets.jsonl", text);
  options_.data = {folder_ / "sets.jsonl"};
  const ProbeResult r = probe();
  EXPECT_EQ(r.labels, (std::vector<std::string>{"animal", "ears", "eyes"}));
  EXPECT_EQ(r.labelled.size(), 48u * 3);
  EXPECT_NEAR(r.majority, 1.0 / 3, 1e-12) << "no label at all";
  EXPECT_EQ(r.tfidf.accuracy.value, 1);
  EXPECT_EQ(r.tfidf.predicted, r.labelled);
  EXPECT_EQ(r.tfidf.f1.value, 1);
}

TEST_F(LinearProbe, PoolsTheStatesOfEachLayer) {
  const auto close_to = [&](const std::vector<float>& found, const char* golden) {
    const Tensor expected = folder_.expected(golden);
    const Tensor x = empty(expected.shape());
    ASSERT_EQ(std::ssize(found), x.size());
    std::copy(found.begin(), found.end(), x.data_as<float>());
    EXPECT_LT(largest_difference(x, expected), 1e-5) << golden;
  };
  const int64_t last = infer::Embedder::open(folder_.path()).spec().encoder->layers;
  close_to(vectors(std::nullopt, ProbePooling::model), "vectors");
  close_to(vectors(std::nullopt, ProbePooling::max), "pool.max");
  close_to(vectors(last, ProbePooling::last), "pool.lasttoken");
  close_to(vectors(last, ProbePooling::weighted_mean), "pool.weightedmean");
  EXPECT_NE(vectors(0, ProbePooling::mean), vectors(last, ProbePooling::mean));
  options_.layers = {0, last};
  const ProbeResult r = probe();
  ASSERT_EQ(r.vectors.size(), 2u);
  EXPECT_EQ(r.vectors[1].layer, last);
}

TEST_F(LinearProbe, RefusesUnsuitableData) {
  options_.layers = {9};
  refused(ErrorKind::InvalidArgument, {"layers: 9; expected 0 to "});
  options_.layers = {};
  options_.cs = {};
  refused(ErrorKind::InvalidArgument, {"cs: no value"});
  options_.cs = {1};
  options_.data = {};
  refused(ErrorKind::InvalidArgument, {"data: not given"});
  options_.data = {folder_ / "labels.tsv"};
  write("a\tx\nb\ty\n");
  refused(ErrorKind::BadFile, {"labels.tsv: 2 labelled texts; expected at least 2 for each of 4"});
  write("a\tx\nb\tx\n");
  refused(ErrorKind::BadFile, {"labels.tsv: all texts have the label x; expected at least 2"});
  write("a\t1.5\nb\t1.5\n");
  refused(ErrorKind::BadFile, {"labels.tsv: all texts have the number 1.5; expected different"});
  std::string mixed = "a\tb\tx\n";
  for (int i = 0; i < 9; ++i) mixed += "a\ty\n";
  write(mixed);
  refused(ErrorKind::BadFile, {"labels.tsv:2: a single text; expected pairs"});
}

TEST_F(LinearProbe, StopsIfTheCallerAsks) {
  double last = 0;
  expect_error(ErrorKind::Failed, {"stopped by the caller"}, [&] {
    linear_probe(infer::Embedder::open(folder_.path()), options_, [&](double fraction) {
      EXPECT_GT(fraction, last);
      last = fraction;
      return fraction < 0.5;
    });
  });
  EXPECT_LT(last, 1);
}

}  // namespace
}  // namespace fovea::study
