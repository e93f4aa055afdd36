#include "data/labelled.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "data/labelled_rows.h"
#include "data/lines.h"
#include "fovea/excerpt.h"

namespace fovea {
namespace {

template <class Number>
std::optional<Number> whole_text_as(const std::string& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns whether all labels are numbers, of which at least one is written with a fraction.
bool holds_measurements(const LabelledTexts& texts) {
  bool fractions = false;
  for (const LabelledText& row : texts.rows) {
    if (!finite_number(row.label)) return false;
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
         row.place);
  for (size_t begin = 0; begin < row.label.size();) {
    const size_t end = std::min(row.label.find(',', begin), row.label.size());
    std::string label = row.label.substr(begin, end - begin);
    label.erase(0, label.find_first_not_of(' '));
    label.erase(label.find_last_not_of(' ') + 1);
    if (label.empty())
      fail(ErrorKind::BadFile, "{}: has an empty label; expected labels separated by commas",
           row.place);
    row.labels.push_back(std::move(label));
    begin = end + 1;
  }
  row.label.clear();
}

void use_label(LabelledText& row, ProblemType problem) {
  if (problem == ProblemType::multi_label) return split_labels(row);
  if (!row.labels.empty() || row.label.empty()) {
    fail(ErrorKind::BadFile, "{}: its label is {}; expected one {}", row.place,
         row.labels.empty() ? "empty" : "a list",
         problem == ProblemType::regression ? "number" : "label");
  }
  if (problem != ProblemType::regression) return;
  const auto number = finite_number(row.label);
  if (!number)
    fail(ErrorKind::BadFile, "{}: \"label\" is \"{}\"; expected a number", row.place,
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

std::optional<double> finite_number(const std::string& text) {
  const auto value = whole_text_as<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

LabelledTexts read_labelled(const std::vector<std::string>& files, ProblemType problem) {
  LabelledTexts texts;
  for (const std::string& path : files) add_labelled_rows(path, texts);
  if (texts.rows.empty())
    fail(ErrorKind::BadFile, "{}: contains no labelled text; expected at least one", files.front());
  texts.by_word = !texts.rows.front().words.empty();
  require_one_kind(texts, files.front());
  if (texts.by_word) {
    texts.problem = ProblemType::single_label;
  } else {
    if (problem == ProblemType::automatic && texts.problem != ProblemType::multi_label)
      problem = holds_measurements(texts) ? ProblemType::regression : ProblemType::single_label;
    if (problem != ProblemType::automatic) texts.problem = problem;
    for (LabelledText& row : texts.rows) use_label(row, texts.problem);
  }
  texts.hash = hash_of(texts);
  return texts;
}

std::vector<std::string> label_names(const LabelledTexts& texts) {
  std::set<std::string> distinct;
  if (texts.problem == ProblemType::regression) return {};
  for (const LabelledText& row : texts.rows) {
    if (!row.label.empty()) distinct.insert(row.label);
    distinct.insert(row.labels.begin(), row.labels.end());
  }
  std::vector<std::string> names(distinct.begin(), distinct.end());
  const bool numbers = std::all_of(names.begin(), names.end(), [](const auto& name) {
    return whole_text_as<int64_t>(name).has_value();
  });
  if (numbers) {
    std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return *whole_text_as<int64_t>(a) < *whole_text_as<int64_t>(b);
    });
  }
  return names;
}

}  // namespace fovea
