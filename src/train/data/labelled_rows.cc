#include "data/labelled_rows.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"
#include "records/table.h"

namespace fovea::train {
namespace {

// The names of the columns, or keys, of a text, and of a second text that may follow it. The first
// ones that a file has are used.
struct TextNames {
  const char *text, *pair;
  bool both = true;  // they are used only if the file has both
};
constexpr std::array kTextNames = {
    TextNames{"text", "text_pair", false}, TextNames{"sentence1", "sentence2"},
    TextNames{"premise", "hypothesis"},    TextNames{"question1", "question2"},
    TextNames{"text1", "text2"},           TextNames{"sentence_a", "sentence_b"},
    TextNames{"question", "sentence"},     TextNames{"question", "passage"},
    TextNames{"query", "passage"}};
constexpr std::array kLoneTextNames = {
    "sentence", "sentence1", "review", "content",   "comment",  "comment_text", "tweet", "document",
    "message",  "headline",  "title",  "utterance", "question", "query",        "body"};
// The names of labels; of the others, a file has only one, since they may mean different things.
constexpr std::initializer_list<const char*> kLabelNames = {"label", "labels", "gold_label"},
                                             kOtherLabelNames = {"sentiment", "category", "class",
                                                                 "intent",    "emotion",  "topic",
                                                                 "tag",       "target",   "stars",
                                                                 "rating",    "score"};
constexpr std::initializer_list<const char*> kIdNames = {"id", "idx", "index", "guid", "uid"};

// A text and a second one by their names; empty: none.
struct FoundTexts {
  std::string text, pair;
};
template <class Has>
FoundTexts texts_among(const Has& has) {
  for (const TextNames& names : kTextNames) {
    const bool pair = has(names.pair);
    if (has(names.text) && (pair || !names.both)) return {names.text, pair ? names.pair : ""};
  }
  for (const char* name : kLoneTextNames)
    if (has(name)) return {name, ""};
  return {};
}

// Returns the name of the label; empty if no name is known.
template <class Has>
std::string label_among(const Has& has, const std::string& location) {
  for (const char* name : kLabelNames)
    if (has(name)) return name;
  std::string found;
  for (const char* name : kOtherLabelNames) {
    if (!has(name)) continue;
    if (!found.empty())
      fail(ErrorKind::BadFile, "{}: has {} and {}; expected one of them, or the name label",
           location, found, name);
    found = name;
  }
  return found;
}

// Of a table of columns of 0 and 1, the text has a known name, and there are several others.
bool are_names_of_labelled(const std::vector<std::string>& columns) {
  const auto has = [&](const char* name) { return text::has_name(columns, {name}); };
  if (text::has_name(columns, kLabelNames) &&
      (columns.back() == "label" || !texts_among(has).text.empty()))
    return true;
  return !texts_among(has).text.empty() &&
         (text::has_name(columns, kOtherLabelNames) || columns.size() > 2);
}

// The columns of a table with names.
class NamedColumns {
 public:
  NamedColumns(const text::Table& table, const std::string& path)
      : table_(table), location_(path + ":1") {
    const auto has = [&](const char* name) { return table.column({name}).has_value(); };
    const FoundTexts texts = texts_among(has);
    label_ = column_of(label_among(has, location_));
    text_ = column_of(texts.text);
    pair_ = column_of(texts.pair);
    if (!text_) find_unnamed_texts();
    if (label_) return;
    for (size_t i = 0; i < table.names.size(); ++i)
      if (i != text_ && i != pair_ && !text::has_name({table.names[i]}, kIdNames))
        flags_.push_back(i);
  }

  // Sets `several` if the row has a column of 0 or 1 for each label.
  LabelledText row(const text::Table::Row& row, bool& several) const {
    LabelledText made;
    made.location = row.location;
    made.in_column = true;
    made.text = row.columns[*text_];
    if (pair_) made.pair = row.columns[*pair_];
    if (label_) {
      made.label = row.columns[*label_];
      return made;
    }
    several = true;
    for (const size_t i : flags_) {
      const auto value = text::finite_number(row.columns[i]);
      if (!value || (*value != 0 && *value != 1))
        fail(ErrorKind::BadFile,
             "{}: names no column label, and {} is \"{}\" at {}; expected the names text and "
             "label, or 0 or 1 in a column for each label",
             location_, excerpt(table_.names[i]), excerpt(row.columns[i]), row.location);
      if (*value == 1) made.labels.push_back(table_.names[i]);
    }
    return made;
  }

 private:
  std::optional<size_t> column_of(const std::string& name) const {
    return name.empty() ? std::nullopt : table_.column({name.c_str()});
  }

  // Beside the label, there may be one or two columns with other names: those of the texts.
  void find_unnamed_texts() {
    std::vector<size_t> others;
    for (size_t i = 0; i < table_.names.size(); ++i)
      if (i != label_ && !text::has_name({table_.names[i]}, kIdNames)) others.push_back(i);
    if (others.empty() || others.size() > 2)
      fail(ErrorKind::BadFile, "{}: names no column text; expected the names text and label",
           location_);
    text_ = others[0];
    if (others.size() == 2) pair_ = others[1];
  }

  const text::Table& table_;
  std::string location_;
  std::optional<size_t> text_, pair_, label_;
  std::vector<size_t> flags_;  // columns of 0 and 1
};

// Reads a row of two or three columns without names.
LabelledText row_of_columns(const text::Table::Row& row) {
  const std::vector<std::string>& columns = row.columns;
  if (columns.size() < 2 || columns.size() > 3) {
    fail(ErrorKind::BadFile,
         "{}: has {} column{}; expected one or two texts and a label, separated by tabs, or by "
         "commas in a .csv file",
         row.location, columns.size(), columns.size() == 1 ? "" : "s");
  }
  LabelledText made;
  made.text = columns[0];
  if (columns.size() == 3) made.pair = columns[1];
  made.label = columns.back();
  made.location = row.location;
  made.in_column = true;
  return made;
}

void add_labelled(LabelledText row, LabelledTexts& texts) {
  if (text::is_blank(row.text) && row.words.empty())
    ++texts.empty;
  else
    texts.rows.push_back(std::move(row));
}

void read_labelled_table(const std::string& path, LabelledTexts& texts) {
  const text::Table table = text::read_table(path, are_names_of_labelled);
  std::optional<NamedColumns> named;
  if (!table.names.empty()) named.emplace(table, path);
  texts.empty += table.blank;
  for (const text::Table::Row& row : table.rows) {
    bool several = false;
    add_labelled(named ? named->row(row, several) : row_of_columns(row), texts);
    if (several) texts.problem = model::ProblemType::multi_label;
  }
}

std::vector<std::string> columns_of(const std::string& line, const char* separators) {
  std::vector<std::string> columns;
  for (size_t end = 0;;) {
    const size_t begin = line.find_first_not_of(separators, end);
    if (begin == line.npos) return columns;
    end = std::min(line.find_first_of(separators, begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
  }
}

// Reads the lines of a file of words: "word ... label" as in the shared tasks of CoNLL, or the 10
// columns of CoNLL-U, of which the second is the word and the fourth its part of speech.
class WordFile {
 public:
  explicit WordFile(const std::string& path) : path_(path), lines_(text::all_lines(path)) {
    for (const std::string& line : lines_) {
      if (text::is_blank(line) || line.starts_with('#')) continue;
      const std::vector<std::string> columns = columns_of(line, kSpaces);
      if (tags_.empty()) universal_ = path.ends_with(".conllu") || is_universal(line);
      tags_.insert(columns.back());
    }
  }

  void read(LabelledTexts& texts) const {
    LabelledText row;
    const auto end_text = [&] {
      if (!row.words.empty()) texts.rows.push_back(std::move(row));
      row = {};
    };
    for (size_t i = 0; i < lines_.size(); ++i) {
      const std::string location = fmt::format("{}:{}", path_, i + 1);
      if (text::is_blank(lines_[i]) || lines_[i].starts_with("-DOCSTART-")) {
        end_text();
      } else if (!is_comment(lines_[i], row.words.empty())) {
        if (row.words.empty()) row.location = location;
        universal_ ? add_universal(lines_[i], location, row) : add_word(lines_[i], location, row);
      }
    }
    end_text();
  }

 private:
  static constexpr const char* kSpaces = " \t";
  static constexpr size_t kUniversalColumns = 10, kForm = 1, kPart = 3;

  static bool is_universal(const std::string& line) {
    return columns_of(line, "\t").size() == kUniversalColumns && line[0] >= '0' && line[0] <= '9';
  }

  // A comment stands before the words of a text. A word may be "#" too; then its label is one that
  // other words have.
  bool is_comment(const std::string& line, bool begins) const {
    if (universal_) return line.starts_with('#');
    return begins && line.starts_with("# ") && line.find('\t') == line.npos &&
           tags_.count(columns_of(line, kSpaces).back()) == 0;
  }

  static void add_word(const std::string& line, const std::string& location, LabelledText& row) {
    const std::vector<std::string> columns = columns_of(line, kSpaces);
    if (columns.size() < 2) {
      fail(ErrorKind::BadFile,
           "{}: has one column; expected a word and its label, or a blank line between texts",
           location);
    }
    row.words.push_back(columns.front());
    row.labels.push_back(columns.back());
  }

  static void add_universal(const std::string& line, const std::string& location,
                            LabelledText& row) {
    const std::vector<std::string> columns = columns_of(line, "\t");
    if (columns.size() != kUniversalColumns)
      fail(ErrorKind::BadFile, "{}: has {} columns; expected 10, separated by tabs, as in CoNLL-U",
           location, columns.size());
    // 3-4 is a word that is written together, and 5.1 one that is not written.
    if (columns[0].find_first_of("-.") != columns[0].npos) return;
    if (columns[kPart] == "_")
      fail(ErrorKind::BadFile, "{}: has no part of speech (column 4, UPOS); expected one",
           location);
    row.words.push_back(columns[kForm]);
    row.labels.push_back(columns[kPart]);
  }

  const std::string& path_;
  std::vector<std::string> lines_;
  std::set<std::string> tags_;  // last columns
  bool universal_ = false;
};

std::string label_of(const nlohmann::json& value, const std::string& key,
                     const std::string& location) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty())
    return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  fail(ErrorKind::BadFile, "{}: \"{}\": a label is {}; expected a string or a number", location,
       key, brief(value));
}

std::vector<std::string> list_of(const nlohmann::json& json,
                                 std::initializer_list<const char*> keys,
                                 const std::string& location, bool labels) {
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const char* name) { return json.contains(name); });
  const std::string found = key == keys.end() ? *keys.begin() : *key;
  const nlohmann::json list = json.value(found, nlohmann::json());
  if (!list.is_array())
    fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a list", location, found, brief(list));
  std::vector<std::string> texts;
  for (const auto& value : list) {
    if (!labels && !value.is_string())
      fail(ErrorKind::BadFile, "{}: \"{}\": a word is {}; expected a string", location, found,
           brief(value));
    texts.push_back(labels ? label_of(value, found, location) : value.get<std::string>());
  }
  return texts;
}

// Reads a key with 0 or 1 for each label. Returns whether there are only such keys.
bool read_flags(const nlohmann::json& json, const FoundTexts& texts, LabelledText& row) {
  size_t count = 0;
  for (const auto& [key, value] : json.items()) {
    if (key == texts.text || key == texts.pair || text::has_name({key}, kIdNames)) continue;
    const std::optional<bool> flag = text::flag_of(value);
    if (!flag) return false;
    if (*flag) row.labels.push_back(key);
    ++count;
  }
  return count > 1;
}

// Sets `several` if the text has a list of labels.
LabelledText row_of_json(const nlohmann::json& json, const std::string& location, bool& several) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"text\" and \"label\"", location,
         brief(json));
  LabelledText row;
  row.location = location;
  if (json.contains("tokens") || json.contains("words")) {
    row.words = list_of(json, {"tokens", "words"}, location, false);
    row.labels = list_of(json, {"labels", "tags", "ner_tags", "pos_tags"}, location, true);
    if (row.words.size() != row.labels.size()) {
      fail(ErrorKind::BadFile, "{}: has {} words and {} labels; expected equal numbers", location,
           row.words.size(), row.labels.size());
    }
    return row;
  }
  const auto has = [&](const char* key) { return json.contains(key); };
  const FoundTexts texts = texts_among(has);
  row.text = get_string(json, texts.text.empty() ? "text" : texts.text, location);
  if (!texts.pair.empty()) row.pair = find_string(json, texts.pair, location).value_or("");
  const std::string label = label_among(has, location);
  several = label == "labels" || (label.empty() && read_flags(json, texts, row));
  if (label == "labels") {
    row.labels = list_of(json, {"labels"}, location, true);
    row.numbers = std::none_of(json["labels"].begin(), json["labels"].end(),
                               [](const nlohmann::json& value) { return value.is_string(); });
  } else if (!several) {
    const std::string key = label.empty() ? "label" : label;
    row.label = label_of(json.value(key, nlohmann::json()), key, location);
  }
  return row;
}

void read_labelled_json(const std::string& path, LabelledTexts& texts) {
  text::each_json_record(path, [&](const std::string& record, const std::string& location) {
    bool several = false;
    LabelledText row = row_of_json(parse_json(record, location), location, several);
    if (several) texts.problem = model::ProblemType::multi_label;
    add_labelled(std::move(row), texts);
  });
}

}  // namespace

void add_labelled_rows(const std::string& path, LabelledTexts& texts) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const auto is_any_of = [&](std::initializer_list<const char*> endings) {
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  if (text::has_records(path)) return read_labelled_json(path, texts);
  if (is_any_of({".conll", ".conllu", ".bio", ".iob", ".iob2"})) return WordFile(path).read(texts);
  read_labelled_table(path, texts);
}

}  // namespace fovea::train
