#include "fovea/study/linear_probe.h"

#include <algorithm>

#include "base/fields.h"
#include "base/float_mode.h"
#include "metrics/bootstrap.h"
#include "probing/probe_data.h"
#include "probing/probe_vectors.h"
#include "probing/tfidf.h"

namespace fovea::study {
namespace {

using Progress = std::function<bool(double fraction)>;

// Reports the progress of a run of equal steps.
class Steps {
 public:
  Steps(const Progress& progress, int64_t count) : progress_(progress), count_(count) {}
  // Reports a fraction of the current step.
  void reach(double fraction) const {
    const double all = (static_cast<double>(done_) + fraction) / static_cast<double>(count_);
    if (progress_ && !progress_(all)) fail(ErrorKind::Failed, "probe: stopped by the caller");
  }
  void finish_one() {
    ++done_;
    reach(0);
  }

 private:
  const Progress& progress_;
  const int64_t count_;
  int64_t done_ = 0;
};

class ProbeRun {
 public:
  ProbeRun(const ProbeOptions& options, const Progress& progress)
      : options_(options),
        data_(read_probe_data(options)),
        // The folds of TF-IDF, and of each layer the vectors and the folds.
        steps_(progress, options.folds + std::max<int64_t>(1, std::ssize(options.layers)) *
                                             (options.folds + 1)) {
    const ProbeTargets& targets = data_.folds.targets;
    result_.problem = targets.problem;
    result_.labels = data_.names;
    result_.labelled = targets.labels;
    result_.numbers = targets.numbers;
    result_.fold = data_.folds.fold;
    result_.majority = majority_of(targets, count());
  }

  void use_words() {
    const WordCounts words(data_.texts);
    result_.tfidf = scores(
        "TF-IDF",
        [&](const std::vector<int32_t>& training) {
          return std::make_shared<const Features>(words.features(training, data_.pairs));
        },
        of_words_);
  }

  void use_vectors(const infer::Embedder& embedder, std::optional<int64_t> layer) {
    ProbeVectors vectors = probe_vectors(embedder, data_.texts, layer, options_.pooling,
                                         [&](double fraction) { steps_.reach(fraction); });
    steps_.finish_one();
    if (vectors.cut > 0 && result_.vectors.empty())
      result_.notes.push_back(
          fmt::format("{} texts are truncated to {} tokens", vectors.cut, embedder.max_tokens()));
    const auto features = std::make_shared<const Features>(
        data_.pairs ? pair_features(vectors.values, vectors.width)
                    : Features(vectors.width, std::move(vectors.values)));
    const std::string name = layer ? fmt::format("layer {}", *layer) : "the vectors";
    ProbeTargets ours;
    ProbeResult::Vectors found{
        layer, vectors.width, scores(name, [&](const auto&) { return features; }, ours), {}};
    found.gain = estimate([&](const std::vector<int32_t>& texts) {
      return score(main_metric(), ours, texts) - score(main_metric(), of_words_, texts);
    });
    result_.vectors.push_back(std::move(found));
  }

  ProbeResult result() && { return std::move(result_); }

 private:
  // Cross-validates one kind of features; `predicted` receives the predictions.
  ProbeScores scores(const std::string& name, const FeaturesOf& features, ProbeTargets& predicted) {
    CrossValidated found = cross_validate(features, data_.folds, options_.cs, options_.seed,
                                          [&](int64_t) { steps_.finish_one(); });
    if (found.unfinished > 0)
      result_.notes.push_back(fmt::format("{}: {} of {} models did not converge", name,
                                          found.unfinished, options_.folds));
    predicted = std::move(found.predicted);
    ProbeScores scores;
    scores.predicted = predicted.labels;
    scores.numbers = predicted.numbers;
    scores.c = std::move(found.c);
    const auto metric = [&](ProbeMetric which) {
      return estimate([&](const auto& texts) { return score(which, predicted, texts); });
    };
    if (numbers()) {
      scores.r2 = metric(ProbeMetric::r2);
      scores.pearson = metric(ProbeMetric::pearson);
    } else {
      scores.accuracy = metric(ProbeMetric::accuracy);
      scores.f1 = metric(ProbeMetric::f1);
    }
    for (int64_t fold = 0; fold < options_.folds; ++fold) {
      std::vector<int32_t> texts;
      for (size_t i = 0; i < result_.fold.size(); ++i)
        if (result_.fold[i] == fold) texts.push_back(static_cast<int32_t>(i));
      scores.fold_scores.push_back(score(main_metric(), predicted, texts));
    }
    return scores;
  }

  bool numbers() const { return data_.folds.targets.problem == model::ProblemType::regression; }
  ProbeMetric main_metric() const { return numbers() ? ProbeMetric::r2 : ProbeMetric::accuracy; }
  int64_t count() const { return std::ssize(data_.folds.fold); }

  double score(ProbeMetric metric, const ProbeTargets& predicted,
               const std::vector<int32_t>& texts) const {
    return score_of(metric, data_.folds.targets, predicted, texts);
  }
  ProbeEstimate estimate(const infer::SampleMetric& metric) const {
    return infer::bootstrap(count(), options_.bootstrap, options_.seed, metric);
  }

  const ProbeOptions& options_;
  const ProbeData data_;
  Steps steps_;
  ProbeTargets of_words_;  // the predictions by TF-IDF
  ProbeResult result_;
};

}  // namespace

void visit(ProbeOptions& o, OptionVisitor& v) {
  constexpr double kLeastC = 1e-9, kMostC = 1e9;
  v.texts({"data",
           "measure linear models on frozen vectors of labelled texts: lines text<TAB>label or "
           "text<TAB>second text<TAB>label, or JSON lines; labels, lists of labels or numbers"},
          o.data);
  v.integers({"layers", "probe the hidden states of these layers (0 = the embeddings)"}, o.layers,
             0, 10'000);
  v.choice({"pooling", "how the vectors of tokens become one vector; model = as the model does"},
           o.pooling, {"model", "cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"});
  v.integer({"folds", "folds of the cross-validation"}, o.folds, 2, 100);
  v.numbers({"cs",
             "inverse strength of the L2 regularisation (of numbers, alpha is 1 / C); of several "
             "values, each fold uses the one that is best for its training texts"},
            o.cs, kLeastC, kMostC);
  v.seed({"seed", "seed of the folds and of the intervals"}, o.seed);
  infer::visit_bootstrap(o.bootstrap, v);
}

ProbeResult linear_probe(const infer::Embedder& embedder, const ProbeOptions& options,
                         const Progress& progress) {
  const FloatMode mode;
  check_fields(options);
  check_field(!options.cs.empty(), "cs", "no value; expected at least one");
  ProbeRun run(options, progress);
  run.use_words();
  if (options.layers.empty()) run.use_vectors(embedder, std::nullopt);
  for (const int64_t layer : options.layers) run.use_vectors(embedder, layer);
  return std::move(run).result();
}

}  // namespace fovea::study
