#include "embed/example_files.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"
#include "records/table.h"

namespace fovea::infer {
namespace {

using ExampleNames = std::initializer_list<const char*>;

// The names of the columns in common data sets. The first ones that a file has are used.
constexpr ExampleNames kFirstNames = {"sentence1", "anchor",  "query",
                                      "question",  "premise", "text1"},
                       kSecondNames = {"sentence2", "positive",   "answer", "passage",
                                       "document",  "hypothesis", "text2"},
                       kThirdNames = {"score", "similarity_score", "similarity", "negative",
                                      "label"};

struct ExampleRecord {
  std::vector<std::string> fields;  // two or three
  std::string location;
  bool label = false;  // the third field has the name label
};

bool are_names_of_examples(const std::vector<std::string>& columns) {
  return text::has_name(columns, kFirstNames) && text::has_name(columns, kSecondNames);
}

ExampleRecord record_of_json(const nlohmann::json& json, const std::string& location) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected texts and optionally a score", location);
  ExampleRecord record{{}, location};
  for (const ExampleNames& names : {kFirstNames, kSecondNames, kThirdNames}) {
    const auto key = std::find_if(names.begin(), names.end(),
                                  [&](const char* name) { return json.contains(name); });
    if (key == names.end()) continue;
    const nlohmann::json& value = json[*key];
    const bool third = record.fields.size() == 2;
    record.label = third && std::string(*key) == "label";
    if (value.is_string())
      record.fields.push_back(value.get<std::string>());
    else if (third && value.is_number())
      record.fields.push_back(value.dump());
    else if (record.label && value.is_boolean())
      record.fields.emplace_back(value.get<bool>() ? "1" : "0");
    else
      fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected {}", location, *key, brief(value),
           third ? "a text or a number" : "a text");
  }
  return record;
}

std::vector<ExampleRecord> records_of_table(const std::string& file) {
  const text::Table table = text::read_table(file, are_names_of_examples);
  const bool named = !table.names.empty();
  const size_t first = table.column(kFirstNames).value_or(0),
               second = table.column(kSecondNames).value_or(1);
  std::optional<size_t> third = table.column(kThirdNames);
  // A third column with another name is what it would be without names.
  if (named && !third && table.names.size() == 3) third = 3 - first - second;
  const bool label = third && table.names[*third] == "label";
  std::vector<ExampleRecord> records;
  for (const text::Table::Row& row : table.rows) {
    ExampleRecord record{row.columns, row.location, label};
    if (named) {
      record.fields = {row.columns[first], row.columns[second]};
      if (third) record.fields.push_back(row.columns[*third]);
    }
    records.push_back(std::move(record));
  }
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

[[noreturn]] void refuse(const ExampleRecord& record, const char* expected) {
  const size_t count = record.fields.size();
  const bool texts = count == 3 && !text::finite_number(record.fields[2]);
  fail(ErrorKind::BadFile, "{}: has {} field{}{}; expected {}", record.location, count,
       count == 1 ? "" : "s", texts ? " and no number" : "", expected);
}

ScoredPair scored_pair(const ExampleRecord& record) {
  const auto score =
      record.fields.size() == 3 ? text::finite_number(record.fields[2]) : std::nullopt;
  if (!score) refuse(record, "two texts and a number");
  if (record.label && (*score < 0 || *score > 1))
    fail(ErrorKind::BadFile,
         "{}: label is {}; expected 0 to 1, or the name score for another range of similarities",
         record.location, record.fields[2]);
  return {record.fields[0], record.fields[1], *score};
}

void add(const ExampleRecord& record, TextExamples& examples) {
  if (examples.kind == ExampleKind::scored) {
    const ScoredPair pair = scored_pair(record);
    examples.scores.push_back(static_cast<float>(pair.score));
  } else if (examples.kind == ExampleKind::triplets) {
    if (record.fields.size() != 3) refuse(record, "three texts, as in the first record");
    examples.negatives.push_back(record.fields[2]);
  } else if (record.fields.size() != 2) {
    refuse(record, "two texts, as in the first record");
  }
  examples.anchors.push_back(record.fields[0]);
  examples.positives.push_back(record.fields[1]);
}

// If only the first record has no number, its fields are names that are not known.
void refuse_unknown_names(const std::vector<ExampleRecord>& records) {
  const bool numbers =
      records.size() > 1 && std::all_of(records.begin() + 1, records.end(), [](const auto& record) {
        return record.fields.size() == 3 && text::finite_number(record.fields[2]);
      });
  if (numbers)
    fail(ErrorKind::BadFile,
         "{}: has no number, as all other records have; expected a number, or the names sentence1, "
         "sentence2 and score",
         records.front().location);
}

std::string description_of(const ExampleRecord& record, ExampleKind kind) {
  constexpr size_t kShown = 60;
  const std::vector<std::string>& fields = record.fields;
  std::string text = fmt::format("the first record ({}) is \"{}\" with \"{}\"", record.location,
                                 excerpt(fields[0], kShown), excerpt(fields[1], kShown));
  if (kind == ExampleKind::scored) text += ", score " + excerpt(fields[2], kShown);
  if (kind == ExampleKind::triplets)
    text += fmt::format(", not with \"{}\"", excerpt(fields[2], kShown));
  return text;
}

}  // namespace

std::vector<ScoredPair> read_scored_pairs(const std::string& file) {
  std::vector<ScoredPair> pairs;
  for (const ExampleRecord& record : read_records(file)) pairs.push_back(scored_pair(record));
  return pairs;
}

TextExamples read_text_examples(const std::string& file) {
  const std::vector<ExampleRecord> records = read_records(file);
  if (records.empty()) fail(ErrorKind::BadFile, "{}: no examples; expected pairs of texts", file);
  TextExamples examples;
  const ExampleRecord& first = records.front();
  if (first.fields.size() == 3)
    examples.kind =
        text::finite_number(first.fields[2]) ? ExampleKind::scored : ExampleKind::triplets;
  if (examples.kind == ExampleKind::triplets) refuse_unknown_names(records);
  for (const ExampleRecord& record : records) add(record, examples);
  examples.first = description_of(first, examples.kind);
  if (examples.kind != ExampleKind::scored) return examples;
  const float largest = *std::max_element(examples.scores.begin(), examples.scores.end());
  for (float& score : examples.scores) score /= std::max(1.0f, largest);
  return examples;
}

}  // namespace fovea::infer
