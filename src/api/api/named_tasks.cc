#include "api/named_tasks.h"

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "base/files_below.h"
#include "base/json.h"
#include "fovea/evaluate_tasks.h"
#include "records/json_records.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

// A row of a data set with its location, for errors.
struct Row {
  const Json& json;
  const std::string& location;

  std::string text(const char* key) const { return get_string(json, key, location); }
  std::vector<std::string> texts(const char* key) const { return list(json, key); }
  const Json& object(const char* key) const {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (found == json.end() || !found->is_object()) refuse(key, "an object");
    return *found;
  }
  std::vector<std::string> list(const Json& from, const char* key) const {
    const auto found = from.is_object() ? from.find(key) : from.end();
    if (found == from.end() || !found->is_array()) refuse(key, "a list of texts");
    std::vector<std::string> all;
    for (const Json& each : *found) {
      if (!each.is_string()) refuse(key, "a list of texts");
      all.push_back(each.get<std::string>());
    }
    return all;
  }
  // A number, or the text of one.
  int64_t index(const char* key, int64_t most) const {
    const auto found = json.find(key);
    int64_t value = -1;
    if (found != json.end() && found->is_number_integer()) value = found->get<int64_t>();
    if (found != json.end() && found->is_string() && found->get<std::string>().size() == 1)
      value = found->get<std::string>()[0] - '0';
    if (value < 0 || value > most) refuse(key, fmt::format("0 to {}", most));
    return value;
  }
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    fail(ErrorKind::BadFile, "{}: \"{}\": expected {}", location, key, expected);
  }
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// As Python's str.capitalize: the first letter in upper case, the others in lower case.
std::string capitalized(std::string_view text) {
  std::string out;
  for (bool first = true; !text.empty(); first = false) {
    const text::utf8::Character c = text::utf8::first(text);
    if (first && c.code_point < 0x80) {
      out += static_cast<char>(std::toupper(static_cast<int>(c.code_point)));
    } else if (first) {
      out += text.substr(0, c.bytes);
    } else {
      for (const char32_t lower : text::unicode::lowercase(c.code_point))
        if (lower != 0) text::utf8::append(out, lower);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

// WikiHow's texts have headings in brackets.
std::string without_brackets(const std::string& text) {
  static const std::regex brackets(R"(\[[^\n]*?\])");
  std::string out = stripped(text);
  replace_all(out, " [title]", ". ");
  out = std::regex_replace(out, brackets, "");
  replace_all(out, "  ", " ");
  return out;
}

TaskRecord hellaswag(const Row& row) {
  TaskRecord record;
  record.context = without_brackets(row.text("activity_label") + ": " + row.text("ctx_a") + " " +
                                    capitalized(row.text("ctx_b")));
  for (const std::string& ending : row.texts("endings"))
    record.choices.push_back(without_brackets(ending));
  record.gold = row.index("label", std::ssize(record.choices) - 1);
  return record;
}

// A question whose "choices" have texts and labels, one of which is the "answerKey".
TaskRecord labelled_choices(const Row& row, std::string context) {
  TaskRecord record;
  record.context = std::move(context);
  const Json& choices = row.object("choices");
  record.choices = row.list(choices, "text");
  const std::vector<std::string> labels = row.list(choices, "label");
  const auto gold = std::find(labels.begin(), labels.end(), stripped(row.text("answerKey"), false));
  record.gold = gold - labels.begin();
  if (record.gold >= std::ssize(record.choices)) row.refuse("answerKey", "a label of the choices");
  return record;
}

TaskRecord arc(const Row& row) {
  return labelled_choices(row, "Question: " + row.text("question") + "\nAnswer:");
}

TaskRecord openbookqa(const Row& row) { return labelled_choices(row, row.text("question_stem")); }

TaskRecord mmlu(const Row& row) {
  TaskRecord record;
  record.group = row.text("subject");
  std::string subject = record.group;
  std::replace(subject.begin(), subject.end(), '_', ' ');
  record.description =
      "The following are multiple choice questions (with answers) about " + subject + ".\n\n";
  const std::vector<std::string> choices = row.texts("choices");
  if (choices.size() != 4) row.refuse("choices", "4 texts");
  record.choices = {"A", "B", "C", "D"};
  record.context = stripped(row.text("question"));
  for (size_t i = 0; i < choices.size(); ++i)
    record.context += "\n" + record.choices[i] + ". " + choices[i];
  record.context += "\nAnswer:";
  record.gold = row.index("answer", 3);
  return record;
}

TaskRecord sciq(const Row& row) {
  TaskRecord record;
  record.context =
      stripped(row.text("support"), false) + "\nQuestion: " + row.text("question") + "\nAnswer:";
  for (const char* key : {"distractor1", "distractor2", "distractor3", "correct_answer"})
    record.choices.push_back(row.text(key));
  record.gold = 3;
  return record;
}

TaskRecord piqa(const Row& row) {
  TaskRecord record;
  record.context = "Question: " + row.text("goal") + "\nAnswer:";
  record.choices = {row.text("sol1"), row.text("sol2")};
  record.gold = row.index("label", 1);
  return record;
}

TaskRecord boolq(const Row& row) {
  TaskRecord record;
  record.context = row.text("passage") + "\nQuestion: " + row.text("question") + "?\nAnswer:";
  record.choices = {"no", "yes"};
  record.gold = row.index("label", 1);
  return record;
}

struct NamedTask {
  const char* name;
  const char* repository;
  const char* files;     // what the paths of the evaluated files begin with
  const char* examples;  // the same for those of the shots; empty = the evaluated ones
  TaskRecord (*record)(const Row& row);
};
constexpr NamedTask kTasks[] = {
    {"arc_challenge", "allenai/ai2_arc", "ARC-Challenge/test", "", arc},
    {"arc_easy", "allenai/ai2_arc", "ARC-Easy/test", "", arc},
    {"boolq", "aps/super_glue", "boolq/validation", "", boolq},
    {"hellaswag", "Rowan/hellaswag", "data/validation", "", hellaswag},
    {"mmlu", "cais/mmlu", "all/test", "all/dev", mmlu},
    {"openbookqa", "allenai/openbookqa", "main/test", "", openbookqa},
    {"piqa", "baber/piqa", "data/validation", "", piqa},
    {"sciq", "allenai/sciq", "data/test", "", sciq},
};

const NamedTask* find_task(const std::string& name) {
  const auto found = std::find_if(std::begin(kTasks), std::end(kTasks),
                                  [&](const NamedTask& task) { return task.name == name; });
  return found == std::end(kTasks) ? nullptr : found;
}

std::vector<TaskRecord> read_files(const NamedTask& task, const std::string& folder,
                                   const std::string& beginning) {
  std::vector<TaskRecord> records;
  for (const std::filesystem::path& path : files_below(folder).files) {
    const std::string file = path.lexically_relative(folder).string();
    if (!file.starts_with(beginning) || !text::has_records(file)) continue;
    text::each_json_record(path.string(), [&](const std::string& text, const std::string& where) {
      const Json json = parse_json(text, where);
      records.push_back(task.record({json, where}));
    });
  }
  if (records.empty())
    fail(ErrorKind::BadFile, "{}: has no records in files {}*; expected those of {}", folder,
         beginning, task.repository);
  return records;
}

}  // namespace

bool is_named_task(const std::string& name) { return find_task(name) != nullptr; }

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const NamedTask& task : kTasks) names.emplace_back(task.name);
  return names;
}

std::optional<model::HubName> task_data_set(const std::string& name) {
  const NamedTask* const task = find_task(name);
  if (task == nullptr) return {};
  return model::HubName{.repository = task->repository, .dataset = true};
}

TaskRecords read_named_task(const std::string& name) {
  const NamedTask& task = *find_task(name);
  const std::string data_set = "hf:datasets/" + std::string(task.repository);
  const std::string folder = model::find_model(data_set);
  if (folder == data_set)
    fail(ErrorKind::BadFile,
         "{}: its data set is not on this disk; expected 'fovea pull {}' before", name, data_set);
  const std::string examples = task.examples;
  return {read_files(task, folder, task.files),
          examples.empty() ? std::vector<TaskRecord>() : read_files(task, folder, examples)};
}

}  // namespace fovea
