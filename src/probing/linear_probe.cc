#include "fovea/linear_probe.h"

#include <algorithm>

#include "base/fields.h"
#include "base/float_mode.h"
#include "data/labelled.h"
#include "metrics/choices.h"
#include "probing/bootstrap.h"
#include "probing/cross_validation.h"
#include "probing/probe_vectors.h"
#include "probing/tfidf.h"

namespace fovea {
namespace {

using Progress = std::function<bool(double fraction)>;

// The labelled texts; of pairs, texts 2i and 2i + 1.
struct ProbeData {
  std::vector<std::string> texts, names;
  LabelledFolds labelled;
  bool pairs = false;
};

void check_kind(const LabelledTexts& texts, const std::string& file) {
  const char* kind = texts.by_word                               ? "labels of words"
                     : texts.problem == ProblemType::multi_label ? "several labels per text"
                     : texts.problem == ProblemType::regression  ? "a number per text"
                                                                 : nullptr;
  if (kind != nullptr)
    fail(ErrorKind::BadFile, "{}: has {}; expected one label per text", file, kind);
}

void add_texts(const LabelledTexts& texts, ProbeData& data) {
  data.pairs = !texts.rows.front().pair.empty();
  for (const LabelledText& row : texts.rows) {
    if (row.pair.empty() == data.pairs)
      fail(ErrorKind::BadFile, "{}: {}; expected {}, as the texts before it", row.place,
           data.pairs ? "a single text" : "a pair of texts", data.pairs ? "pairs" : "single texts");
    data.texts.push_back(row.text);
    if (data.pairs) data.texts.push_back(row.pair);
    const auto name = std::find(data.names.begin(), data.names.end(), row.label);
    data.labelled.labels.push_back(static_cast<int32_t>(name - data.names.begin()));
  }
}

ProbeData read_data(const ProbeOptions& options) {
  check_field(!options.data.empty(), "data", "not given; expected files of labelled texts");
  const LabelledTexts texts = read_labelled(options.data);
  const std::string& file = options.data.front();
  check_kind(texts, file);
  ProbeData data;
  data.names = label_names(texts);
  if (data.names.size() < 2)
    fail(ErrorKind::BadFile, "{}: all texts have the label {}; expected at least 2 labels", file,
         data.names.front());
  const int64_t count = std::ssize(texts.rows);
  if (count < 2 * options.folds)
    fail(ErrorKind::BadFile, "{}: {} labelled texts; expected at least 2 for each of {} folds",
         file, count, options.folds);
  add_texts(texts, data);
  data.labelled.classes = std::ssize(data.names);
  data.labelled.folds = options.folds;
  data.labelled.fold = stratified_folds(data.labelled.labels, options.folds, options.seed);
  return data;
}

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
        data_(read_data(options)),
        // The folds of TF-IDF, and of each layer the vectors and the folds.
        steps_(progress, options.folds + std::max<int64_t>(1, std::ssize(options.layers)) *
                                             (options.folds + 1)) {
    result_.labels = data_.names;
    result_.labelled = data_.labelled.labels;
    result_.fold = data_.labelled.fold;
    std::vector<int64_t> counts(data_.names.size());
    for (const int32_t label : result_.labelled) ++counts[static_cast<size_t>(label)];
    result_.majority = static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
                       static_cast<double>(result_.labelled.size());
  }

  void use_words() {
    const WordCounts words(data_.texts);
    result_.tfidf = scores("TF-IDF", [&](const std::vector<int32_t>& training) {
      return std::make_shared<const Features>(words.features(training, data_.pairs));
    });
  }

  void use_vectors(const Embedder& embedder, std::optional<int64_t> layer) {
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
    ProbeResult::Vectors found{
        layer, vectors.width, scores(name, [&](const auto&) { return features; }), {}};
    const std::vector<int32_t>&ours = found.scores.predicted, &theirs = result_.tfidf.predicted;
    found.gain = estimate([&](const std::vector<int32_t>& texts) {
      return accuracy(choices(ours, texts)) - accuracy(choices(theirs, texts));
    });
    result_.vectors.push_back(std::move(found));
  }

  ProbeResult result() && { return std::move(result_); }

 private:
  ProbeScores scores(const std::string& name, const FeaturesOf& features) {
    CrossValidated found = cross_validate(features, data_.labelled, options_.cs, options_.seed,
                                          [&](int64_t) { steps_.finish_one(); });
    if (found.unfinished > 0)
      result_.notes.push_back(fmt::format("{}: {} of {} models did not converge", name,
                                          found.unfinished, options_.folds));
    ProbeScores scores;
    scores.predicted = std::move(found.predicted);
    scores.c = std::move(found.c);
    const std::vector<int32_t>& predicted = scores.predicted;
    scores.accuracy =
        estimate([&](const auto& texts) { return accuracy(choices(predicted, texts)); });
    scores.f1 =
        estimate([&](const auto& texts) { return macro_f1(counts_of(choices(predicted, texts))); });
    for (int64_t fold = 0; fold < options_.folds; ++fold) {
      std::vector<int32_t> texts;
      for (size_t i = 0; i < predicted.size(); ++i)
        if (result_.fold[i] == fold) texts.push_back(static_cast<int32_t>(i));
      scores.fold_accuracy.push_back(accuracy(choices(predicted, texts)));
    }
    return scores;
  }

  ProbeEstimate estimate(const SampleMetric& metric) const {
    return bootstrap(std::ssize(result_.labelled), options_.seed, metric);
  }

  Choices choices(const std::vector<int32_t>& predicted, const std::vector<int32_t>& texts) const {
    Choices choices;
    choices.reserve(texts.size());
    for (const int32_t text : texts)
      choices.emplace_back(result_.labelled[static_cast<size_t>(text)],
                           predicted[static_cast<size_t>(text)]);
    return choices;
  }

  const ProbeOptions& options_;
  const ProbeData data_;
  Steps steps_;
  ProbeResult result_;
};

}  // namespace

void visit(ProbeOptions& o, OptionVisitor& v) {
  constexpr double kLeastC = 1e-9, kMostC = 1e9;
  v.texts({"data",
           "measure logistic regression on frozen vectors of labelled texts: lines "
           "text<TAB>label or text<TAB>second text<TAB>label, or JSON lines"},
          o.data);
  v.integers({"layers", "probe the hidden states of these layers (0 = the embeddings)"}, o.layers,
             0, 10'000);
  v.choice({"pooling", "how the vectors of tokens become one vector; model = as the model does"},
           o.pooling, {"model", "cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"});
  v.integer({"folds", "folds of the stratified cross-validation"}, o.folds, 2, 100);
  v.numbers({"cs",
             "inverse strength of the L2 regularisation; of several values, each fold uses the "
             "one that is best for its training texts"},
            o.cs, kLeastC, kMostC);
  v.seed({"seed", "seed of the folds and of the intervals"}, o.seed);
}

ProbeResult linear_probe(const Embedder& embedder, const ProbeOptions& options,
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

}  // namespace fovea
