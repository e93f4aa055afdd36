#include "fovea/study/evaluate_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "metrics/bootstrap.h"
#include "metrics/choices.h"
#include "metrics/correlation.h"
#include "metrics/sentence_scores.h"
#include "probing/cross_validation.h"
#include "probing/k_means.h"
#include "probing/sentence_sets.h"

namespace fovea::study {
namespace {

constexpr int64_t kFolds = 5;
constexpr double kC = 1;

// Measures one file.
class SentenceRun {
 public:
  SentenceRun(const infer::Embedder& embedder, const SentenceData& data, const std::string& file)
      : embedder_(embedder), data_(data), file_(file), set_(read_sentence_set(file)) {
    check_size();
  }

  // `reached` receives the completed fraction.
  void embed(const std::function<void(double)>& reached) {
    constexpr size_t kTextsAtOnce = 512;  // sorted by length together
    const size_t of_record = set_.task == SentenceTask::topics ? 1 : 2;
    for (size_t begin = 0; begin < set_.texts.size(); begin += kTextsAtOnce) {
      reached(static_cast<double>(begin) / static_cast<double>(set_.texts.size()));
      infer::EmbedOptions options;
      options.name_of_text = [&](size_t i) { return set_.locations[(begin + i) / of_record]; };
      const size_t end = std::min(set_.texts.size(), begin + kTextsAtOnce);
      const infer::Embeddings block =
          embedder_.embed({set_.texts.begin() + static_cast<int64_t>(begin),
                           set_.texts.begin() + static_cast<int64_t>(end)},
                          options);
      width_ = block.width;
      vectors_.insert(vectors_.end(), block.values.begin(), block.values.end());
      cut_ += std::count_if(block.cut.begin(), block.cut.end(), [](int64_t n) { return n > 0; });
    }
  }

  std::vector<SentenceScores> scores() const {
    switch (set_.task) {
      case SentenceTask::similarity: return {similarity()};
      case SentenceTask::pairs: return {pairs()};
      case SentenceTask::translations: return {translations()};
      case SentenceTask::topics: break;
    }
    return {clusters(), labels()};
  }

  int64_t cut() const { return cut_; }

 private:
  void check_size() const {
    const bool topics = set_.task == SentenceTask::topics;
    const int64_t least = topics ? 2 * kFolds : 2;
    if (set_.records() < least)
      fail(ErrorKind::BadFile, "{}: {} records; expected at least {}", file_, set_.records(),
           least);
    const auto [lowest, highest] = std::minmax_element(set_.labels.begin(), set_.labels.end());
    if (!set_.labels.empty() && *lowest == *highest)
      fail(ErrorKind::BadFile, "{}: all records have the same label; expected at least two labels",
           file_);
  }

  std::span<const float> vector(int64_t text) const {
    return std::span(vectors_).subspan(static_cast<size_t>(text * width_),
                                       static_cast<size_t>(width_));
  }
  double similarity_of(int64_t text, int64_t other) const {
    return double{embedder_.similarity(vector(text), vector(other))};
  }
  std::vector<double> similarities() const {
    std::vector<double> all;
    for (int64_t i = 0; i < set_.records(); ++i) all.push_back(similarity_of(2 * i, 2 * i + 1));
    return all;
  }

  SentenceScores named(const char* task) const { return {file_, task, set_.records(), {}}; }
  // Adds metric(sample), where sample(i) makes an element of record i for each record of a
  // bootstrap sample.
  template <class Sample, class Metric>
  void add(SentenceScores& scores, const char* name, Sample sample, Metric metric) const {
    scores.metrics.emplace_back(
        name, infer::bootstrap(set_.records(), data_.bootstrap, data_.seed,
                               [&](const std::vector<int32_t>& records) {
                                 std::vector<decltype(sample(size_t{0}))> chosen;
                                 chosen.reserve(records.size());
                                 for (const int32_t i : records)
                                   chosen.push_back(sample(static_cast<size_t>(i)));
                                 return metric(chosen);
                               }));
  }

  SentenceScores similarity() const {
    SentenceScores scores = named("similarity");
    const std::vector<double> ours = similarities();
    const auto both = [&](size_t i) { return std::pair(ours[i], set_.scores[i]); };
    const auto correlation = [](auto of) {
      return [of](const std::vector<std::pair<double, double>>& sample) {
        std::vector<double> x, y;
        for (const auto& [a, b] : sample) {
          x.push_back(a);
          y.push_back(b);
        }
        return of(x, y);
      };
    };
    add(scores, "spearman", both, correlation(infer::spearman));
    add(scores, "pearson", both, correlation(infer::pearson));
    return scores;
  }

  SentenceScores pairs() const {
    SentenceScores scores = named("pairs");
    const std::vector<double> ours = similarities();
    const auto pair = [&](size_t i) { return std::pair(ours[i], set_.labels[i] == 1); };
    const auto best = [](double infer::BestThresholds::* value) {
      return [value](const infer::LabelledPairs& sample) {
        return infer::best_thresholds(sample).*value;
      };
    };
    add(scores, "average_precision", pair, infer::average_precision);
    add(scores, "f1", pair, best(&infer::BestThresholds::f1));
    add(scores, "f1_threshold", pair, best(&infer::BestThresholds::f1_threshold));
    add(scores, "accuracy", pair, best(&infer::BestThresholds::accuracy));
    add(scores, "accuracy_threshold", pair, best(&infer::BestThresholds::accuracy_threshold));
    return scores;
  }

  // The class of a sentence is its number; the choice is the most similar one of the others, of
  // equal ones the first.
  SentenceScores translations() const {
    SentenceScores scores = named("translations");
    std::vector<int32_t> chosen(static_cast<size_t>(set_.records()));
    parallel_tasks(set_.records(), [&](int64_t i) {
      double most = 0;
      for (int64_t j = 0; j < set_.records(); ++j) {
        const double similarity = similarity_of(2 * i, 2 * j + 1);
        if (j > 0 && similarity <= most) continue;
        most = similarity;
        chosen[static_cast<size_t>(i)] = static_cast<int32_t>(j);
      }
    });
    const auto choice = [&](size_t i) { return std::pair(static_cast<int32_t>(i), chosen[i]); };
    add(scores, "f1", choice,
        [](const infer::Choices& sample) { return infer::weighted_f1(infer::counts_of(sample)); });
    add(scores, "accuracy", choice,
        [](const infer::Choices& sample) { return infer::accuracy(sample); });
    return scores;
  }

  SentenceScores clusters() const {
    SentenceScores scores = named("clusters");
    const VectorGroups groups = k_means(vectors_, width_, std::ssize(set_.names), data_.seed);
    add(
        scores, "v_measure", [&](size_t i) { return std::pair(set_.labels[i], groups.of[i]); },
        infer::v_measure);
    return scores;
  }

  SentenceScores labels() const {
    SentenceScores scores = named("labels");
    std::vector<int32_t> all(set_.labels.size());
    std::iota(all.begin(), all.end(), 0);
    ProbeFolds folds{
        {model::ProblemType::single_label, std::ssize(set_.names), set_.labels}, {}, kFolds};
    folds.fold = folds_of(folds.targets, all, kFolds, data_.seed);
    const auto features = std::make_shared<const Features>(width_, vectors_);
    const ProbeTargets predicted =
        cross_validate([&](const auto&) { return features; }, folds, {kC}, data_.seed).predicted;
    const auto choice = [&](size_t i) { return std::pair(set_.labels[i], predicted.labels[i]); };
    add(scores, "accuracy", choice,
        [](const infer::Choices& sample) { return infer::accuracy(sample); });
    add(scores, "f1", choice,
        [](const infer::Choices& sample) { return infer::macro_f1(infer::counts_of(sample)); });
    return scores;
  }

  const infer::Embedder& embedder_;
  const SentenceData& data_;
  const std::string file_;
  const SentenceSet set_;
  std::vector<float> vectors_;  // [texts, width]
  int64_t width_ = 0, cut_ = 0;
};

}  // namespace

void visit(SentenceData& o, OptionVisitor& v) {
  v.texts({"sentences", "measure vectors on sets of sentences (docs/embed.md)"}, o.sentences);
  infer::visit_bootstrap(o.bootstrap, v);
  v.seed({"seed", "seed of the intervals, the folds and the first means of k-means"}, o.seed);
}

SentenceEvaluation evaluate_sentences(const infer::Embedder& embedder, const SentenceData& data,
                                      const std::function<bool(double fraction)>& progress) {
  const FloatMode mode;
  check_fields(data);
  check_field(!data.sentences.empty(), "sentences", "not given; expected files of sentences");
  SentenceEvaluation result;
  int64_t cut = 0;
  for (size_t i = 0; i < data.sentences.size(); ++i) {
    SentenceRun run(embedder, data, data.sentences[i]);
    run.embed([&](double fraction) {
      const double all =
          (static_cast<double>(i) + fraction) / static_cast<double>(data.sentences.size());
      if (progress && !progress(all)) fail(ErrorKind::Failed, "sentences: stopped by the caller");
    });
    for (SentenceScores& scores : run.scores()) result.scores.push_back(std::move(scores));
    cut += run.cut();
  }
  if (cut > 0)
    result.notes.push_back(
        fmt::format("{} texts are truncated to {} tokens", cut, embedder.max_tokens()));
  return result;
}

}  // namespace fovea::study
