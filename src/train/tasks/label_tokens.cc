#include "tasks/label_tokens.h"

#include <algorithm>

#include "base/fields.h"
#include "fovea/core/excerpt.h"
#include "records/table.h"

namespace fovea::train {

LabelTokens::LabelTokens(infer::TextFormat format, std::vector<std::string> names)
    : format_(std::move(format)), names_(std::move(names)) {}

LabelledTokens LabelTokens::operator()(const LabelledTexts& texts) {
  LabelledTokens tokens;
  for (const LabelledText& row : texts.rows) {
    std::vector<int32_t> labels = {0};
    const infer::TokenizedText found = texts.by_word ? words_of(row, labels) : tokens_of(row);
    if (!texts.by_word && texts.problem == model::ProblemType::single_label)
      labels = {number_of(row.label, row.location)};
    else if (!texts.by_word)
      add_targets(row, texts.problem, tokens.targets);
    cut_ += found.cut > 0;
    tokens.ids.add(found.ids);
    tokens.types.add(found.all_types());
    tokens.labels.add(labels);
  }
  return tokens;
}

int32_t LabelTokens::number_of(const std::string& label, const std::string& location) const {
  const auto at = std::find(names_.begin(), names_.end(), label);
  if (at == names_.end()) {
    fail_field(ErrorKind::BadFile, "validation_labels",
               "{}: the label \"{}\" is not in `labels`; expected one of {}", location,
               excerpt(label),
               fmt::join(names_.begin(),
                         names_.begin() + std::min<std::ptrdiff_t>(9, std::ssize(names_)), ", "));
  }
  return static_cast<int32_t>(at - names_.begin());
}

void LabelTokens::add_targets(const LabelledText& row, model::ProblemType problem,
                              std::vector<float>& targets) const {
  if (problem == model::ProblemType::regression)
    return targets.push_back(static_cast<float>(row.number));
  const size_t first = targets.size();
  targets.resize(first + names_.size(), -1.0f);
  for (const std::string& label : row.labels)
    targets[first + static_cast<size_t>(number_of(label, row.location))] = 1;
}

infer::TokenizedText LabelTokens::tokens_of(const LabelledText& row) const {
  if (row.pair.empty()) return format_.text(row.text);
  return format_.pair(format_.own_ids(row.text), row.pair);
}

infer::TokenizedText LabelTokens::words_of(const LabelledText& row,
                                           std::vector<int32_t>& labels) const {
  const text::Encoding own =
      format_.tokenizer().encoding(fmt::format("{}", fmt::join(row.words, " ")),
                                   {.add_special_tokens = false, .truncate_and_pad = false});
  const std::vector<int32_t> all = labels_of_words(row, own);
  const auto [begin, end] = format_.kept(all.size());
  labels.assign(static_cast<size_t>(format_.leading()), -1);
  labels.insert(labels.end(), all.begin() + static_cast<std::ptrdiff_t>(begin),
                all.begin() + static_cast<std::ptrdiff_t>(end));
  labels.insert(labels.end(), static_cast<size_t>(format_.trailing()), -1);
  return format_.truncated(own.ids);
}

// Returns the label of each token of the joined words: the first token of a word has the word's
// label; other tokens have -1, no label.
std::vector<int32_t> LabelTokens::labels_of_words(const LabelledText& row,
                                                  const text::Encoding& found) const {
  std::vector<int32_t> labels(found.ids.size(), -1);
  size_t token = 0, begin = 0;
  for (size_t word = 0; word < row.words.size(); ++word) {
    const size_t end = begin + row.words[word].size();
    while (token < labels.size() && found.byte_offsets[token].end <= begin) ++token;
    if (token < labels.size() && found.byte_offsets[token].begin < end)
      labels[token++] = number_of(row.labels[word], row.location);
    begin = end + 1;
  }
  return labels;
}

namespace {

// Weights that give each label the same sum of weights: n / (L n_l) for one label per text. For
// several, the texts without a label and with it.
std::vector<float> balanced_weights(size_t outputs, const LabelledTokens& texts) {
  std::vector<double> with(outputs);
  double all = 0;
  if (texts.targets.empty()) {
    for (int64_t i = 0; i < texts.labels.count(); ++i) {
      for (int64_t t = 0; t < texts.labels.length(i); ++t) {
        const int32_t label = texts.labels[i][t];
        if (label < 0) continue;
        ++with[static_cast<size_t>(label)];
        ++all;
      }
    }
    all /= static_cast<double>(outputs);
  } else {
    for (size_t i = 0; i < texts.targets.size(); ++i) with[i % outputs] += texts.targets[i] > 0;
    const size_t count = texts.targets.size() / outputs;
    all = static_cast<double>(count);
  }
  std::vector<float> weights(outputs, 1.0f);
  for (size_t label = 0; label < outputs; ++label) {
    const double share = texts.targets.empty() ? all : all - with[label];
    if (with[label] > 0 && share > 0) weights[label] = static_cast<float>(share / with[label]);
  }
  return weights;
}

}  // namespace

std::vector<float> class_weights(const std::string& given, const std::vector<std::string>& names,
                                 const LabelledTokens& texts) {
  if (given == "balanced") return balanced_weights(names.size(), texts);
  std::vector<float> weights(names.size(), 1.0f);
  for (size_t begin = 0; begin < given.size();) {
    const size_t end = std::min(given.find(',', begin), given.size());
    const std::string item = given.substr(begin, end - begin);
    begin = end + 1;
    const size_t sign = item.rfind('=');
    const double weight =
        sign == item.npos ? -1 : text::finite_number(item.substr(sign + 1)).value_or(-1);
    check_field(weight >= 0, "class_weights",
                "\"{}\"; expected balanced, or NAME=WEIGHT,... with weights of at least 0",
                excerpt(item));
    const auto at = std::find(names.begin(), names.end(), item.substr(0, sign));
    check_field(at != names.end(), "class_weights",
                "\"{}\" is not a label of the data; expected one of {}",
                excerpt(item.substr(0, sign)), fmt::join(names, ", "));
    weights[static_cast<size_t>(at - names.begin())] = static_cast<float>(weight);
  }
  return weights;
}

}  // namespace fovea::train
