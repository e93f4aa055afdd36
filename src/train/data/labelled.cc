#include "data/labelled.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "data/labelled_rows.h"
#include "fovea/core/excerpt.h"
#include "records/table.h"

namespace fovea::train {
namespace {

std::optional<int64_t> as_integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns whether all labels are numbers, of which at least one is written with a fraction.
bool holds_measurements(const LabelledTexts& texts) {
  bool fractions = false;
  for (const LabelledText& row : texts.rows) {
    if (!text::finite_number(row.label)) return false;
    fractions = fractions || row.label.find('.') != std::string::npos;
  }
  return fractions;
}

void require_one_kind(const LabelledTexts& texts, const std::string& file) {
  for (const LabelledText& row : texts.rows) {
    if (row.words.empty() == texts.by_word) {
      fail(ErrorKind::BadFile,
           "{}: some texts have one label, others have one per word; expected only one kind", file);
    }
  }
}

// Splits the column of labels "a,b" of a tab-separated line.
void split_labels(LabelledText& row) {
  if (!row.in_column && !row.label.empty())
    fail(ErrorKind::BadFile, "{}: has \"label\"; expected \"labels\", a list, as other texts have",
         row.location);
  for (size_t begin = 0; begin < row.label.size();) {
    const size_t end = std::min(row.label.find(',', begin), row.label.size());
    std::string label = row.label.substr(begin, end - begin);
    label.erase(0, label.find_first_not_of(' '));
    label.erase(label.find_last_not_of(' ') + 1);
    if (label.empty())
      fail(ErrorKind::BadFile, "{}: has an empty label; expected labels separated by commas",
           row.location);
    row.labels.push_back(std::move(label));
    begin = end + 1;
  }
  row.label.clear();
}

// Lists of 0 and 1 of equal length have a number for each label. Other lists name the labels that a
// text has, each once.
void number_labels(LabelledTexts& texts) {
  const size_t size = texts.rows.front().labels.size();
  const auto zero_or_one = [](const std::string& label) {
    const auto number = text::finite_number(label);
    return label == "true" || label == "false" || (number && (*number == 0 || *number == 1));
  };
  const bool flags = std::all_of(texts.rows.begin(), texts.rows.end(), [&](const auto& row) {
    return row.numbers && row.labels.size() == size &&
           std::all_of(row.labels.begin(), row.labels.end(), zero_or_one);
  });
  for (LabelledText& row : texts.rows) {
    if (flags && size > 1) {
      std::vector<std::string> set;
      for (size_t i = 0; i < size; ++i)
        if (row.labels[i] == "true" || text::finite_number(row.labels[i]).value_or(0) == 1)
          set.push_back(fmt::format("{}", i));
      row.labels = std::move(set);
      continue;
    }
    std::set<std::string> seen;
    for (const std::string& label : row.labels)
      if (!seen.insert(label).second)
        fail(ErrorKind::BadFile,
             "{}: \"labels\" has \"{}\" twice; expected each label once, or in all texts a list of "
             "0 and 1 with one number for each label",
             row.location, excerpt(label));
  }
}

void use_label(LabelledText& row, model::ProblemType problem) {
  if (problem == model::ProblemType::multi_label) return split_labels(row);
  if (!row.labels.empty() || row.label.empty()) {
    fail(ErrorKind::BadFile, "{}: its label is {}; expected one {}", row.location,
         row.labels.empty() ? "empty" : "a list",
         problem == model::ProblemType::regression ? "number" : "label");
  }
  if (problem != model::ProblemType::regression) return;
  const auto number = text::finite_number(row.label);
  if (!number)
    fail(ErrorKind::BadFile, "{}: \"label\" is \"{}\"; expected a number", row.location,
         excerpt(row.label));
  row.number = *number;
}

uint64_t hash_of(const LabelledTexts& texts) {
  Hasher hasher;
  const auto add = [&](const std::string& text) {
    hasher.add(text);
    hasher.add(std::string_view("\0", 1));
  };
  for (const LabelledText& row : texts.rows) {
    for (const auto* text : {&row.text, &row.pair, &row.label}) add(*text);
    for (const auto* list : {&row.words, &row.labels})
      for (const std::string& text : *list) add(text);
  }
  return hasher.hash();
}

}  // namespace

LabelledTexts read_labelled(const std::vector<std::string>& files, model::ProblemType problem) {
  LabelledTexts texts;
  for (const std::string& path : files) add_labelled_rows(path, texts);
  if (texts.rows.empty())
    fail(ErrorKind::BadFile, "{}: contains no labelled text; expected at least one", files.front());
  texts.by_word = !texts.rows.front().words.empty();
  require_one_kind(texts, files.front());
  if (texts.by_word) {
    texts.problem = model::ProblemType::single_label;
  } else {
    if (problem == model::ProblemType::automatic &&
        texts.problem != model::ProblemType::multi_label)
      problem = holds_measurements(texts) ? model::ProblemType::regression
                                          : model::ProblemType::single_label;
    if (problem != model::ProblemType::automatic) texts.problem = problem;
    for (LabelledText& row : texts.rows) use_label(row, texts.problem);
    if (texts.problem == model::ProblemType::multi_label) number_labels(texts);
  }
  texts.hash = hash_of(texts);
  return texts;
}

std::vector<std::string> label_names(const LabelledTexts& texts) {
  std::set<std::string> distinct;
  if (texts.problem == model::ProblemType::regression) return {};
  for (const LabelledText& row : texts.rows) {
    if (!row.label.empty()) distinct.insert(row.label);
    distinct.insert(row.labels.begin(), row.labels.end());
  }
  std::vector<std::string> names(distinct.begin(), distinct.end());
  const bool numbers = std::all_of(names.begin(), names.end(),
                                   [](const auto& name) { return as_integer(name).has_value(); });
  if (numbers) {
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return *as_integer(a) < *as_integer(b); });
  }
  return names;
}

std::vector<std::string> summary_of(const LabelledTexts& texts) {
  constexpr size_t kShownBytes = 60, kShownLabels = 8;
  const LabelledText& row = texts.rows.front();
  std::string first = fmt::format("the first record ({}) is ", row.location);
  if (texts.by_word) {
    for (size_t i = 0; i < row.words.size() && first.size() < 2 * kShownBytes; ++i)
      first += fmt::format("{}{}: {}", i == 0 ? "" : ", ", excerpt(row.words[i], kShownBytes),
                           excerpt(row.labels[i], kShownBytes));
  } else {
    first += fmt::format("\"{}\"", excerpt(row.text, kShownBytes));
    if (!row.pair.empty()) first += fmt::format(" with \"{}\"", excerpt(row.pair, kShownBytes));
    if (texts.problem == model::ProblemType::multi_label)
      first += fmt::format(": {}", row.labels.empty() ? "no label" : "");
    else
      first += ": " + excerpt(row.label, kShownBytes);
    first += excerpt(fmt::format("{}", fmt::join(row.labels, ", ")), kShownBytes);
  }
  std::map<std::string, int64_t> counts;
  for (const LabelledText& each : texts.rows) {
    if (!each.label.empty()) ++counts[each.label];
    for (const std::string& label : each.labels) ++counts[label];
  }
  if (texts.problem == model::ProblemType::regression) return {first};
  std::string labels;
  size_t shown = 0;
  for (const std::string& name : label_names(texts)) {
    if (shown++ == kShownLabels) break;
    labels += fmt::format("{}{} {}", labels.empty() ? "" : ", ", excerpt(name, kShownBytes),
                          counts[name]);
  }
  if (counts.size() > kShownLabels)
    labels += fmt::format(" and {} others", counts.size() - kShownLabels);
  return {first, "labels: " + labels};
}

}  // namespace fovea::train
