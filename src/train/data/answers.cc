#include "data/answers.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"

namespace fovea::train {
namespace {

using Json = nlohmann::json;

const Json& list_at(const Json& object, const char* key, const std::string& location) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_array())
    fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a list", location, key,
         object.is_object() && found != object.end() ? brief(*found) : "missing");
  return *found;
}

// Calls use(element, location) with each element of a list under `key`.
template <class Use>
void each_of(const Json& object, const char* key, const std::string& location, const Use& use) {
  const Json& list = list_at(object, key, location);
  for (size_t i = 0; i < list.size(); ++i) use(list[i], fmt::format("{}.{}[{}]", location, key, i));
}

// Returns the byte at which a character begins; the size of the text if it has fewer.
size_t byte_of(const std::string& text, int64_t character) {
  size_t byte = 0;
  for (; byte < text.size(); ++byte) {
    const bool begins = (static_cast<unsigned char>(text[byte]) & 0xC0) != 0x80;
    if (begins && character-- == 0) break;
  }
  return byte;
}

LabelledQuestion::Answer answer_of(const Json& json, const std::string& context,
                                   const std::string& location) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"text\" and \"answer_start\"",
         location, brief(json));
  LabelledQuestion::Answer answer{get_string(json, "text", location), 0};
  const Json start = json.value("answer_start", Json());
  if (!start.is_number_integer() || start < 0)
    fail(ErrorKind::BadFile, "{}: \"answer_start\" is {}; expected a whole number of at least 0",
         location, brief(start));
  const size_t begin = byte_of(context, start.get<int64_t>());
  if (answer.text.empty() || context.compare(begin, answer.text.size(), answer.text) != 0)
    fail(ErrorKind::BadFile, "{}: \"{}\" is not in the context at character {}; expected it there",
         location, excerpt(answer.text), start.get<int64_t>());
  answer.begin = static_cast<int64_t>(begin);
  return answer;
}

void add_question(const Json& json, const std::string& location, QuestionSet& set) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"question\" and \"answers\"",
         location, brief(json));
  LabelledQuestion question;
  question.id = get_string(json, "id", location);
  question.text = get_string(json, "question", location);
  question.context = set.contexts.size() - 1;
  const Json impossible = json.value("is_impossible", Json(false));
  if (!impossible.is_boolean())
    fail(ErrorKind::BadFile, "{}: \"is_impossible\" is {}; expected true or false", location,
         brief(impossible));
  if (!impossible.get<bool>())
    each_of(json, "answers", location, [&](const Json& answer, const std::string& where) {
      question.answers.push_back(answer_of(answer, set.contexts.back(), where));
    });
  set.questions.push_back(std::move(question));
}

// Returns whether the object that begins at byte `begin` has this key first.
bool begins_with_key(const std::string& text, size_t begin, std::string_view key) {
  const size_t first = text.find('"', begin);
  return text[begin] == '{' && first != text.npos &&
         text.find_first_not_of(" \t\r\n", begin + 1) == first &&
         text.compare(first, key.size(), key) == 0;
}

// Returns whether a file is one document with the key "data". Labelled texts are objects without
// these keys.
bool is_document(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json") return false;
  const std::string text = text::read_text(path);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos &&
         (text.find("\"paragraphs\"") != text.npos || begins_with_key(text, begin, "\"data\""));
}

// Returns whether a file has records of a question, its context and its answers.
bool has_rows(const std::string& path) try {
  if (!text::has_records(path)) return false;
  const Json row = parse_json(text::first_json_record(path), path);
  return row.is_object() && row.contains("question") && row.contains("context") &&
         row.contains("answers");
} catch (const Error&) {
  return false;
}

// Adds a row of a data set of Hugging Face, whose "answers" are an object of two lists.
void add_row(const Json& row, const std::string& location, QuestionSet& set) {
  if (!row.is_object())
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"question\" and \"context\"",
         location, brief(row));
  const std::string context = get_string(row, "context", location);
  if (set.contexts.empty() || set.contexts.back() != context) set.contexts.push_back(context);
  Json question = row;
  const Json given = row.value("answers", Json());
  if (given.is_object()) {
    const std::string where = location + ".answers";
    const Json& texts = list_at(given, "text", where);
    const Json& starts = list_at(given, "answer_start", where);
    if (texts.size() != starts.size())
      fail(ErrorKind::BadFile, "{}: has {} texts and {} starts; expected equal numbers", where,
           texts.size(), starts.size());
    question["answers"] = Json::array();
    for (size_t i = 0; i < texts.size(); ++i)
      question["answers"].push_back({{"text", texts[i]}, {"answer_start", starts[i]}});
  }
  add_question(question, location, set);
}

}  // namespace

bool hold_questions(const std::vector<std::string>& files) {
  return !files.empty() && std::all_of(files.begin(), files.end(), [](const std::string& path) {
    return is_file(path) && (is_document(path) || has_rows(path));
  });
}

QuestionSet read_questions(const std::vector<std::string>& files) {
  QuestionSet set;
  Hasher hasher;
  for (const std::string& path : files) {
    if (!is_document(path)) {
      text::each_json_record(path, [&](const std::string& record, const std::string& location) {
        const Json row = parse_json(record, location);
        hasher.add(row.dump());
        add_row(row, location, set);
      });
      continue;
    }
    const Json json = parse_json(text::read_text(path), path);
    hasher.add(json.dump());
    each_of(json, "data", path, [&](const Json& article, const std::string& in_data) {
      each_of(
          article, "paragraphs", in_data, [&](const Json& paragraph, const std::string& location) {
            if (!paragraph.is_object())
              fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"context\" and \"qas\"",
                   location, brief(paragraph));
            set.contexts.push_back(get_string(paragraph, "context", location));
            each_of(paragraph, "qas", location,
                    [&](const Json& question, const std::string& where) {
                      add_question(question, where, set);
                    });
          });
    });
  }
  if (set.questions.empty())
    fail(ErrorKind::BadFile, "{}: contains no question; expected at least one", files.front());
  set.hash = hasher.hash();
  return set;
}

}  // namespace fovea::train
