#include "data/labelled.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/lines.h"

namespace fovea {
namespace {

bool holds_json(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return ending == ".jsonl" || ending == ".json";
}

// Parses a row of two or three columns; returns nothing if its text is blank.
std::optional<LabelledText> row_of(const std::string& line, const std::string& name) {
  const size_t last = line.rfind('\t'), first = line.find('\t');
  if (last == line.npos || std::count(line.begin(), line.end(), '\t') > 2) {
    fail(ErrorKind::BadFile,
         "{}: has {} column{}; expected one or two texts and a label, separated by tabs", name,
         std::count(line.begin(), line.end(), '\t') + 1, last == line.npos ? "" : "s");
  }
  LabelledText row;
  row.text = line.substr(0, first);
  if (first != last) row.pair = line.substr(first + 1, last - first - 1);
  row.label = line.substr(last + 1);
  if (row.label.empty())
    fail(ErrorKind::BadFile, "{}: its label is empty; expected a label after the last tab", name);
  if (is_blank(row.text)) return std::nullopt;
  return row;
}

void read_table(const std::string& path, LabelledTexts& texts) {
  const std::vector<std::string> lines = read_lines(path);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 0 && lines[0].ends_with("\tlabel")) continue;  // the header
    if (lines[i].empty()) {
      ++texts.empty;
      continue;
    }
    auto row = row_of(lines[i], fmt::format("{}:{}", path, i + 1));
    if (row)
      texts.rows.push_back(std::move(*row));
    else
      ++texts.empty;
  }
}

std::string label_of(const nlohmann::json& value, const std::string& name) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) return value;
  if (value.is_number_integer()) return value.dump();
  fail(ErrorKind::BadFile, "{}: a label is {}; expected a string or an integer", name,
       brief(value));
}

std::vector<std::string> list_of(const nlohmann::json& json, const char* key, const char* other,
                                 const std::string& name, bool labels) {
  const nlohmann::json list = json.value(json.contains(key) ? key : other, nlohmann::json());
  if (!list.is_array())
    fail(ErrorKind::BadFile, "{}: {} is {}; expected a list", name,
         json.contains(key) || !json.contains(other) ? key : other, brief(list));
  std::vector<std::string> texts;
  for (const auto& value : list) {
    if (!labels && !value.is_string())
      fail(ErrorKind::BadFile, "{}: a word is {}; expected a string", name, brief(value));
    texts.push_back(labels ? label_of(value, name) : value.get<std::string>());
  }
  return texts;
}

LabelledText row_of(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"text\" and \"label\"", name,
         brief(json));
  LabelledText row;
  if (json.contains("tokens") || json.contains("words")) {
    row.words = list_of(json, "tokens", "words", name, false);
    row.labels = list_of(json, "labels", "tags", name, true);
    if (row.words.size() != row.labels.size()) {
      fail(ErrorKind::BadFile, "{}: has {} words and {} labels; expected equal numbers", name,
           row.words.size(), row.labels.size());
    }
    return row;
  }
  row.text = get_string(json, "text", name);
  row.pair = find_string(json, "text_pair", name).value_or("");
  row.label = label_of(json.value("label", nlohmann::json()), name);
  return row;
}

void read_json_lines(const std::string& path, LabelledTexts& texts) {
  each_json_line(path, [&](const std::string& line, const std::string& name) {
    LabelledText row = row_of(parse_json(line, name), name);
    if (is_blank(row.text) && row.words.empty())
      ++texts.empty;
    else
      texts.rows.push_back(std::move(row));
  });
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

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

LabelledTexts read_labelled(const std::vector<std::string>& files) {
  LabelledTexts texts;
  for (const std::string& path : files)
    holds_json(path) ? read_json_lines(path, texts) : read_table(path, texts);
  if (texts.rows.empty())
    fail(ErrorKind::BadFile, "{}: contains no labelled text; expected at least one", files.front());
  texts.by_word = !texts.rows.front().words.empty();
  for (const LabelledText& row : texts.rows) {
    if (row.words.empty() == texts.by_word) {
      fail(ErrorKind::BadFile,
           "{}: some texts have one label, others have one per word; expected only one kind",
           files.front());
    }
  }
  texts.hash = hash_of(texts);
  return texts;
}

std::vector<std::string> label_names(const LabelledTexts& texts) {
  std::set<std::string> distinct;
  for (const LabelledText& row : texts.rows) {
    if (!texts.by_word) distinct.insert(row.label);
    distinct.insert(row.labels.begin(), row.labels.end());
  }
  std::vector<std::string> names(distinct.begin(), distinct.end());
  const bool numbers = std::all_of(names.begin(), names.end(),
                                   [](const auto& name) { return whole_number(name).has_value(); });
  if (numbers) {
    std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
      return *whole_number(a) < *whole_number(b);
    });
  }
  return names;
}

}  // namespace fovea
