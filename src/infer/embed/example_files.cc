#include "embed/example_files.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"
#include "records/table.h"

namespace fovea::infer {
namespace {

using ExampleNames = std::initializer_list<const char*>;
using Json = nlohmann::json;

// The names of the columns in common data sets. The first ones that a file has are used.
constexpr ExampleNames kFirstNames = {"sentence1", "anchor",  "query",
                                      "question",  "premise", "text1"},
                       kSecondNames = {"sentence2", "positive",   "answer", "passage",
                                       "document",  "hypothesis", "text2",  "passage1"},
                       kLabelNames = {"score",  "similarity_score", "similarity",
                                      "scores", "margin",           "label",
                                      "labels"};

struct ExampleRecord {
  std::vector<std::string> texts;    // anchor, positive, negatives
  std::optional<std::string> label;  // a number or a JSON list of numbers
  std::string location;
  bool bounded = false;  // the label has the name label
};

bool are_names_of_examples(const std::vector<std::string>& columns) {
  return text::has_name(columns, kFirstNames) && text::has_name(columns, kSecondNames);
}

// Returns the rank of a column of negatives among these: negative, negative_N, text3, passage2, ...
std::optional<int64_t> negative_rank(const std::string& name) {
  constexpr size_t kDigits = 4;
  const size_t stem = name.find_last_not_of("0123456789") + 1;
  if (stem + kDigits < name.size()) return std::nullopt;
  const int64_t number = stem < name.size() ? std::stoll(name.substr(stem)) : 0;
  const std::string kind = name.substr(0, stem);
  if (kind == "negative" || (kind == "negative_" && stem < name.size())) return number;
  if ((kind == "text" && number >= 3) || (kind == "passage" && number >= 2)) return number;
  return std::nullopt;
}

// Returns the indices of the names of negatives, in the order of their ranks.
std::vector<size_t> negatives_of(const std::vector<std::string>& names) {
  std::vector<std::pair<int64_t, size_t>> ranked;
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto rank = negative_rank(names[i])) ranked.emplace_back(*rank, i);
  std::sort(ranked.begin(), ranked.end());
  std::vector<size_t> indices;
  for (const auto& [rank, i] : ranked) indices.push_back(i);
  return indices;
}

// Returns the numbers of a label; empty if it is neither a number nor a list of numbers.
std::vector<float> numbers_of(const std::string& label) {
  if (const auto number = text::finite_number(label)) return {static_cast<float>(*number)};
  const Json list = Json::parse(label, nullptr, false);
  std::vector<float> numbers;
  if (!list.is_array()) return numbers;
  for (const Json& each : list) {
    if (!each.is_number()) return {};
    numbers.push_back(each.get<float>());
  }
  return numbers;
}

// Returns the key that the record has, as the first of these names.
std::optional<std::string> key_of(const Json& json, ExampleNames names) {
  for (const char* name : names)
    if (json.contains(name)) return name;
  return std::nullopt;
}

const std::string& text_at(const Json& json, const std::string& key, const std::string& location) {
  const Json& value = json[key];
  if (!value.is_string())
    fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a text", location, key, brief(value));
  return value.get_ref<const std::string&>();
}

std::string label_at(const Json& json, const std::string& key, const std::string& location) {
  const Json& value = json[key];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() && key == "label") return value.get<bool>() ? "1" : "0";
  if (value.is_number() || (value.is_array() && !numbers_of(value.dump()).empty()))
    return value.dump();
  fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a number or a list of numbers", location,
       key, brief(value));
}

ExampleRecord record_of_json(const Json& json, const std::string& location) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected texts and optionally a score", location);
  ExampleRecord record{{}, {}, location};
  for (const ExampleNames& names : {kFirstNames, kSecondNames})
    if (const auto key = key_of(json, names)) record.texts.push_back(text_at(json, *key, location));
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  for (const size_t i : negatives_of(names))
    record.texts.push_back(text_at(json, names[i], location));
  if (const auto key = key_of(json, kLabelNames)) {
    record.label = label_at(json, *key, location);
    record.bounded = *key == "label";
  }
  return record;
}

// Moves numbers in the last column to the label. The first record determines whether it has them.
void find_labels(std::vector<ExampleRecord>& records) {
  const auto has_numbers = [](const ExampleRecord& record) {
    return record.texts.size() > 2 && !numbers_of(record.texts.back()).empty();
  };
  if (records.empty() || !has_numbers(records.front())) return;
  for (ExampleRecord& record : records) {
    if (!has_numbers(record)) continue;
    record.label = std::move(record.texts.back());
    record.texts.pop_back();
  }
}

std::vector<ExampleRecord> records_of_table(const std::string& file) {
  const text::Table table = text::read_table(file, are_names_of_examples);
  std::vector<ExampleRecord> records;
  if (table.names.empty()) {
    for (const text::Table::Row& row : table.rows)
      records.push_back({row.columns, {}, row.location});
    find_labels(records);
    return records;
  }
  std::vector<size_t> texts = {*table.column(kFirstNames), *table.column(kSecondNames)};
  for (const size_t column : negatives_of(table.names)) texts.push_back(column);
  const std::optional<size_t> label = table.column(kLabelNames);
  // A third column with another name is what it would be without names.
  const bool other = table.names.size() == 3 && texts.size() == 2 && !label;
  if (other) texts.push_back(3 - texts[0] - texts[1]);
  for (const text::Table::Row& row : table.rows) {
    ExampleRecord record{{}, {}, row.location};
    for (const size_t column : texts) record.texts.push_back(row.columns[column]);
    if (label) record.label = row.columns[*label];
    record.bounded = label && table.names[*label] == "label";
    records.push_back(std::move(record));
  }
  if (other) find_labels(records);
  return records;
}

std::vector<ExampleRecord> read_records(const std::string& file) {
  // A table does not begin with a brace, nor with an array of objects.
  const std::string first = text::first_json_record(file);
  if (!first.starts_with('{')) return records_of_table(file);
  std::vector<ExampleRecord> records;
  text::each_json_record(file, [&](const std::string& record, const std::string& location) {
    records.push_back(record_of_json(parse_json(record, location), location));
  });
  return records;
}

[[noreturn]] void refuse(const ExampleRecord& record, const std::string& expected) {
  const size_t count = record.texts.size() + (record.label ? 1 : 0);
  const bool texts = count == 3 && (!record.label || !text::finite_number(*record.label));
  fail(ErrorKind::BadFile, "{}: has {} field{}{}; expected {}", record.location, count,
       count == 1 ? "" : "s", texts ? " and no number" : "", expected);
}

ScoredPair scored_pair(const ExampleRecord& record) {
  const auto score =
      record.texts.size() >= 2 && record.label ? text::finite_number(*record.label) : std::nullopt;
  if (!score) refuse(record, "two texts and a number");
  if (record.bounded && (*score < 0 || *score > 1))
    fail(ErrorKind::BadFile,
         "{}: label is {}; expected 0 to 1, or the name score for another range of similarities",
         record.location, *record.label);
  return {record.texts[0], record.texts[1], *score};
}

// Adds the scores of a teacher, as many as the first example has.
void add_teacher(const ExampleRecord& record, TextExamples& examples) {
  const std::vector<float> scores = record.label ? numbers_of(*record.label) : std::vector<float>();
  const int64_t count = std::ssize(scores), negatives = examples.negatives();
  if (examples.teacher.empty()) examples.teacher_scores = count;
  if (count != examples.teacher_scores || (count != negatives && count != negatives + 1))
    fail(ErrorKind::BadFile,
         "{}: has {} scores of a teacher (scores, label or margin); expected {}, of the positive "
         "and the negatives, or {}, the margins{}",
         record.location, count, negatives + 1, negatives,
         examples.teacher.empty() ? "" : ", as in the first record");
  examples.teacher.insert(examples.teacher.end(), scores.begin(), scores.end());
}

void add(const ExampleRecord& record, TextExamples& examples) {
  if (examples.kind == ExampleKind::scored)
    examples.scores.push_back(static_cast<float>(scored_pair(record).score));
  else if (record.texts.size() != examples.texts.size() ||
           (record.label && examples.kind == ExampleKind::pairs))
    refuse(record,
           fmt::format("{} texts, as in the first record",
                       examples.texts.size() == 2   ? "two"
                       : examples.texts.size() == 3 ? "three"
                                                    : std::to_string(examples.texts.size())));
  for (size_t column = 0; column < examples.texts.size(); ++column)
    examples.texts[column].push_back(record.texts[column]);
}

// If only the first record has no number, its fields are names that are not known.
void refuse_unknown_names(const std::vector<ExampleRecord>& records) {
  const bool numbers =
      records.size() > 1 && std::all_of(records.begin() + 1, records.end(), [](const auto& record) {
        return record.texts.size() == 3 && text::finite_number(record.texts[2]);
      });
  if (numbers)
    fail(ErrorKind::BadFile,
         "{}: has no number, as all other records have; expected a number, or the names sentence1, "
         "sentence2 and score",
         records.front().location);
}

std::string description_of(const ExampleRecord& record, const TextExamples& examples) {
  constexpr size_t kShown = 60;
  const auto quoted = [](const std::string& text) { return '"' + excerpt(text, kShown) + '"'; };
  std::string text = fmt::format("the first record ({}) is {} with {}", record.location,
                                 quoted(record.texts[0]), quoted(record.texts[1]));
  if (examples.negatives() > 0) text += ", not with " + quoted(record.texts[2]);
  if (examples.negatives() > 1) text += fmt::format(" and {} others", examples.negatives() - 1);
  if (examples.kind == ExampleKind::scored || examples.teacher_scores > 0)
    text += ", score " + excerpt(*record.label, kShown);
  return text;
}

}  // namespace

std::vector<ScoredPair> read_scored_pairs(const std::string& file) {
  std::vector<ScoredPair> pairs;
  for (const ExampleRecord& record : read_records(file)) pairs.push_back(scored_pair(record));
  return pairs;
}

TextExamples read_text_examples(const std::string& file, bool teacher) {
  const std::vector<ExampleRecord> records = read_records(file);
  if (records.empty()) fail(ErrorKind::BadFile, "{}: no examples; expected pairs of texts", file);
  TextExamples examples;
  const ExampleRecord& first = records.front();
  if (first.texts.size() < 2) refuse(first, "two texts and optionally a score");
  if (first.texts.size() > 2) {
    examples.kind = ExampleKind::triplets;
    refuse_unknown_names(records);
  } else if (first.label) {
    examples.kind = ExampleKind::scored;
  }
  examples.texts.resize(first.texts.size());
  for (const ExampleRecord& record : records) {
    add(record, examples);
    if (teacher && examples.kind == ExampleKind::triplets) add_teacher(record, examples);
  }
  examples.first = description_of(first, examples);
  if (examples.kind != ExampleKind::scored) return examples;
  const float largest = *std::max_element(examples.scores.begin(), examples.scores.end());
  for (float& score : examples.scores) score /= std::max(1.0f, largest);
  return examples;
}

}  // namespace fovea::infer
