#include "data/labelled_rows.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "data/lines.h"

namespace fovea {
namespace {

// Parses a row of two or three columns; returns nothing if its text is blank.
std::optional<LabelledText> row_of_columns(const std::string& line, const std::string& place) {
  const size_t last = line.rfind('\t'), first = line.find('\t');
  if (last == line.npos || std::count(line.begin(), line.end(), '\t') > 2) {
    fail(ErrorKind::BadFile,
         "{}: has {} column{}; expected one or two texts and a label, separated by tabs", place,
         std::count(line.begin(), line.end(), '\t') + 1, last == line.npos ? "" : "s");
  }
  LabelledText row;
  row.text = line.substr(0, first);
  if (first != last) row.pair = line.substr(first + 1, last - first - 1);
  row.label = line.substr(last + 1);
  row.place = place;
  row.in_column = true;
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
    auto row = row_of_columns(lines[i], fmt::format("{}:{}", path, i + 1));
    if (row)
      texts.rows.push_back(std::move(*row));
    else
      ++texts.empty;
  }
}

// Reads lines "word ... label", as those of the shared tasks of CoNLL.
void read_words(const std::string& path, LabelledTexts& texts) {
  const std::vector<std::string> lines = read_lines(path);
  LabelledText row;
  const auto end_text = [&] {
    if (!row.words.empty()) texts.rows.push_back(std::move(row));
    row = {};
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (is_blank(line) || line.starts_with("-DOCSTART-")) {
      end_text();
      continue;
    }
    constexpr const char* kSpaces = " \t";
    const size_t begin = line.find_first_not_of(kSpaces), end = line.find_first_of(kSpaces, begin);
    const size_t last = line.find_last_not_of(kSpaces) + 1;
    if (end >= last) {
      fail(ErrorKind::BadFile,
           "{}:{}: has one column; expected a word and its label, or a blank line between texts",
           path, i + 1);
    }
    const size_t tag = line.find_last_of(kSpaces, last - 1) + 1;
    if (row.words.empty()) row.place = fmt::format("{}:{}", path, i + 1);
    row.words.push_back(line.substr(begin, end - begin));
    row.labels.push_back(line.substr(tag, last - tag));
  }
  end_text();
}

std::string label_of(const nlohmann::json& value, const char* key, const std::string& place) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) return value;
  if (value.is_number()) return value.dump();
  fail(ErrorKind::BadFile, "{}: \"{}\": a label is {}; expected a string or a number", place, key,
       brief(value));
}

std::vector<std::string> list_of(const nlohmann::json& json, const char* key, const char* other,
                                 const std::string& place, bool labels) {
  const char* found = json.contains(key) || !json.contains(other) ? key : other;
  const nlohmann::json list = json.value(found, nlohmann::json());
  if (!list.is_array())
    fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a list", place, found, brief(list));
  std::vector<std::string> texts;
  for (const auto& value : list) {
    if (!labels && !value.is_string())
      fail(ErrorKind::BadFile, "{}: \"{}\": a word is {}; expected a string", place, found,
           brief(value));
    texts.push_back(labels ? label_of(value, found, place) : value.get<std::string>());
  }
  return texts;
}

// Sets `several` if the text has a list of labels.
LabelledText row_of_json(const nlohmann::json& json, const std::string& place, bool& several) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"text\" and \"label\"", place,
         brief(json));
  LabelledText row;
  row.place = place;
  if (json.contains("tokens") || json.contains("words")) {
    row.words = list_of(json, "tokens", "words", place, false);
    row.labels = list_of(json, "labels", "tags", place, true);
    if (row.words.size() != row.labels.size()) {
      fail(ErrorKind::BadFile, "{}: has {} words and {} labels; expected equal numbers", place,
           row.words.size(), row.labels.size());
    }
    return row;
  }
  row.text = get_string(json, "text", place);
  row.pair = find_string(json, "text_pair", place).value_or("");
  several = json.contains("labels");
  if (several)
    row.labels = list_of(json, "labels", "labels", place, true);
  else
    row.label = label_of(json.value("label", nlohmann::json()), "label", place);
  return row;
}

void read_json_lines(const std::string& path, LabelledTexts& texts) {
  each_json_line(path, [&](const std::string& line, const std::string& place) {
    bool several = false;
    LabelledText row = row_of_json(parse_json(line, place), place, several);
    if (several) texts.problem = ProblemType::multi_label;
    if (is_blank(row.text) && row.words.empty())
      ++texts.empty;
    else
      texts.rows.push_back(std::move(row));
  });
}

}  // namespace

void add_labelled_rows(const std::string& path, LabelledTexts& texts) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const auto is_any_of = [&](std::initializer_list<const char*> endings) {
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  if (is_any_of({".jsonl", ".json"})) return read_json_lines(path, texts);
  if (is_any_of({".conll", ".bio", ".iob", ".iob2"})) return read_words(path, texts);
  read_table(path, texts);
}

}  // namespace fovea
