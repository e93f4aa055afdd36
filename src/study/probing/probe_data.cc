#include "probing/probe_data.h"

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "data/labelled.h"
#include "metrics/choices.h"
#include "metrics/correlation.h"

namespace fovea::study {
namespace {

void add_labels(const train::LabelledText& row, const std::vector<std::string>& names,
                ProbeTargets& targets) {
  if (targets.problem == model::ProblemType::regression) {
    targets.numbers.push_back(row.number);
  } else if (targets.problem == model::ProblemType::single_label) {
    const auto name = std::find(names.begin(), names.end(), row.label);
    targets.labels.push_back(static_cast<int32_t>(name - names.begin()));
  } else {
    for (const std::string& name : names)
      targets.labels.push_back(
          std::find(row.labels.begin(), row.labels.end(), name) != row.labels.end() ? 1 : 0);
  }
}

void add_texts(const train::LabelledTexts& texts, ProbeData& data) {
  data.pairs = !texts.rows.front().pair.empty();
  for (const train::LabelledText& row : texts.rows) {
    if (row.pair.empty() == data.pairs)
      fail(ErrorKind::BadFile, "{}: {}; expected {}, as the texts before it", row.location,
           data.pairs ? "a single text" : "a pair of texts", data.pairs ? "pairs" : "single texts");
    data.texts.push_back(row.text);
    if (data.pairs) data.texts.push_back(row.pair);
    add_labels(row, data.names, data.folds.targets);
  }
}

// Refuses labels that are the same for all texts.
void check_labels(const train::LabelledTexts& texts, const ProbeData& data,
                  const std::string& file) {
  if (texts.problem != model::ProblemType::regression) {
    const size_t least = texts.problem == model::ProblemType::single_label ? 2 : 1;
    if (data.names.size() < least)
      fail(ErrorKind::BadFile, "{}: all texts have {}; expected at least {}", file,
           data.names.empty() ? "no label" : "the label " + data.names.front(),
           least == 2 ? "2 labels" : "one label");
    return;
  }
  const auto other = [&](const train::LabelledText& row) {
    return row.number != texts.rows.front().number;
  };
  if (std::none_of(texts.rows.begin(), texts.rows.end(), other))
    fail(ErrorKind::BadFile, "{}: all texts have the number {}; expected different numbers", file,
         texts.rows.front().number);
}

// Returns 1 - (sum of squared errors) / (sum of squared differences from the mean); 0 if all
// numbers are equal.
double r_squared(const std::vector<double>& y, const std::vector<double>& predicted) {
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  double errors = 0, differences = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    errors += (y[i] - predicted[i]) * (y[i] - predicted[i]);
    differences += (y[i] - mean) * (y[i] - mean);
  }
  return differences > 0 ? 1 - errors / differences : 0;
}

infer::Choices choices_of(const ProbeTargets& labelled, const ProbeTargets& predicted,
                          const std::vector<int32_t>& texts) {
  infer::Choices choices;
  choices.reserve(texts.size());
  for (const int32_t text : texts)
    choices.emplace_back(labelled.labels[static_cast<size_t>(text)],
                         predicted.labels[static_cast<size_t>(text)]);
  return choices;
}

infer::LabelSets sets_of(const ProbeTargets& labelled, const ProbeTargets& predicted,
                         const std::vector<int32_t>& texts) {
  infer::LabelSets sets{.width = labelled.classes};
  for (const int32_t text : texts)
    for (int64_t k = 0; k < labelled.classes; ++k) {
      const auto at = static_cast<size_t>(text * labelled.classes + k);
      sets.labelled.push_back(labelled.labels[at] != 0);
      sets.chosen.push_back(predicted.labels[at] != 0);
    }
  return sets;
}

}  // namespace

ProbeData read_probe_data(const ProbeOptions& options) {
  check_field(!options.data.empty(), "data", "not given; expected files of labelled texts");
  const train::LabelledTexts texts = train::read_labelled(options.data);
  const std::string& file = options.data.front();
  if (texts.by_word)
    fail(ErrorKind::BadFile, "{}: has labels of words; expected labels of texts", file);
  ProbeData data;
  data.names = train::label_names(texts);
  data.folds.targets.problem = texts.problem;
  data.folds.targets.classes = std::ssize(data.names);
  check_labels(texts, data, file);
  const int64_t count = std::ssize(texts.rows);
  if (count < 2 * options.folds)
    fail(ErrorKind::BadFile, "{}: {} labelled texts; expected at least 2 for each of {} folds",
         file, count, options.folds);
  add_texts(texts, data);
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  data.folds.folds = options.folds;
  data.folds.fold = folds_of(data.folds.targets, all, options.folds, options.seed);
  return data;
}

double score_of(ProbeMetric metric, const ProbeTargets& labelled, const ProbeTargets& predicted,
                const std::vector<int32_t>& texts) {
  if (labelled.problem == model::ProblemType::regression) {
    std::vector<double> y, z;
    for (const int32_t text : texts) {
      y.push_back(labelled.numbers[static_cast<size_t>(text)]);
      z.push_back(predicted.numbers[static_cast<size_t>(text)]);
    }
    return metric == ProbeMetric::r2 ? r_squared(y, z) : infer::pearson(y, z);
  }
  const bool exact = metric == ProbeMetric::accuracy;
  if (labelled.problem == model::ProblemType::multi_label) {
    const infer::LabelSets sets = sets_of(labelled, predicted, texts);
    return exact ? infer::accuracy(sets) : infer::macro_f1(infer::counts_of(sets), true);
  }
  const infer::Choices choices = choices_of(labelled, predicted, texts);
  return exact ? infer::accuracy(choices) : infer::macro_f1(infer::counts_of(choices));
}

double majority_of(const ProbeTargets& labelled, int64_t texts) {
  if (labelled.problem == model::ProblemType::regression) return 0;
  const bool several = labelled.problem == model::ProblemType::multi_label;
  std::vector<int64_t> counts(static_cast<size_t>(labelled.classes));
  for (size_t i = 0; i < labelled.labels.size(); ++i)
    counts[several ? i % counts.size() : static_cast<size_t>(labelled.labels[i])] +=
        several ? labelled.labels[i] : 1;
  ProbeTargets usual = labelled;
  const auto most = std::max_element(counts.begin(), counts.end()) - counts.begin();
  for (size_t i = 0; i < usual.labels.size(); ++i)
    usual.labels[i] = several ? 2 * counts[i % counts.size()] > texts : static_cast<int32_t>(most);
  std::vector<int32_t> all(static_cast<size_t>(texts));
  std::iota(all.begin(), all.end(), 0);
  return score_of(ProbeMetric::accuracy, labelled, usual, all);
}

}  // namespace fovea::study
