#include "embed/example_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace fovea {
namespace {

struct Record {
  std::vector<std::string> fields;
  std::string name;  // for errors
};

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Alternative keys of the three fields in common data sets.
const std::array<std::initializer_list<const char*>, 3> kKeys = {
    {{"sentence1", "anchor", "query"}, {"sentence2", "positive"}, {"score", "negative"}}};

std::vector<std::string> fields_of(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object; expected texts and optionally a score", name);
  std::vector<std::string> fields;
  for (const auto& keys : kKeys)
    for (const char* key : keys) {
      const auto found = json.find(key);
      if (found == json.end()) continue;
      fields.push_back(found->is_string() ? found->get<std::string>() : found->dump());
      break;
    }
  return fields;
}

std::vector<Record> read_records(const std::string& file) {
  const std::string text = read_file(file);
  const std::string first_line = text.substr(0, text.find('\n'));
  const bool json = text.starts_with('{');
  const char separator = first_line.find('\t') != std::string::npos ? '\t' : ',';
  std::vector<Record> records;
  size_t count = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string name = fmt::format("{}: record {}", file, ++count);
    if (!json) {
      records.push_back({next_record(text, at, separator), name});
    } else {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      records.push_back({fields_of(parse_json(line, name), name), name});
    }
    const auto& fields = records.back().fields;
    if (fields.size() == 1 && fields[0].empty()) records.pop_back();  // an empty line
  }
  return records;
}

bool holds_names(const Record& record) {
  return !record.fields.empty() &&
         std::any_of(kKeys[0].begin(), kKeys[0].end(),
                     [&](const char* key) { return record.fields[0] == key; });
}

[[noreturn]] void refuse(const Record& record, const char* expected) {
  fail(ErrorKind::BadFile, "{} has {} fields{}; expected {}", record.name, record.fields.size(),
       record.fields.size() == 3 && !number(record.fields[2]) ? " and no number" : "", expected);
}

ScoredPair scored_pair(const Record& record) {
  const auto score = record.fields.size() == 3 ? number(record.fields[2]) : std::nullopt;
  if (!score) refuse(record, "two texts and a number");
  return {record.fields[0], record.fields[1], *score};
}

void add(const Record& record, TextExamples& examples) {
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

}  // namespace

std::vector<std::string> next_record(const std::string& text, size_t& at, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  while (at < text.size()) {
    const char c = text[at++];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (at < text.size() && text[at] == '"') {
        fields.back() += text[at++];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == separator) {
      fields.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r' || (at < text.size() && text[at] != '\n')) {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<ScoredPair> read_scored_pairs(const std::string& file) {
  std::vector<ScoredPair> pairs;
  for (const Record& record : read_records(file))
    if (!pairs.empty() || !holds_names(record)) pairs.push_back(scored_pair(record));
  return pairs;
}

TextExamples read_text_examples(const std::string& file) {
  std::vector<Record> records = read_records(file);
  if (!records.empty() && holds_names(records.front())) records.erase(records.begin());
  if (records.empty()) fail(ErrorKind::BadFile, "{}: no examples; expected pairs of texts", file);
  TextExamples examples;
  const auto& first = records.front().fields;
  if (first.size() == 3)
    examples.kind = number(first[2]) ? ExampleKind::scored : ExampleKind::triplets;
  for (const Record& record : records) add(record, examples);
  if (examples.kind != ExampleKind::scored) return examples;
  const float largest = *std::max_element(examples.scores.begin(), examples.scores.end());
  for (float& score : examples.scores) score /= std::max(1.0f, largest);
  return examples;
}

}  // namespace fovea
