#include "api/task_records.h"

#include "api/named_tasks.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "metrics/words.h"
#include "records/json_records.h"

namespace fovea {
namespace {

constexpr int64_t kMostTokens = 1 << 20;

std::vector<std::string> texts_of(const nlohmann::json& json, const char* key,
                                  const std::string& name) {
  std::vector<std::string> texts;
  const nlohmann::json& list = json[key];
  if (list.is_string()) return {list.get<std::string>()};
  if (!list.is_array() || list.empty())
    fail(ErrorKind::BadFile, "{}: \"{}\" is {}; expected a list of texts", name, key, brief(list));
  for (const nlohmann::json& text : list) {
    if (!text.is_string() || text.get<std::string>().empty())
      fail(ErrorKind::BadFile, "{}: \"{}\" has {}; expected texts", name, key, brief(text));
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

void read_generated(const nlohmann::json& json, const std::string& name, TaskRecord& record) {
  record.target = get_string(json, "target", name);
  if (json.contains("stop")) record.stop = texts_of(json, "stop", name);
  record.max_tokens =
      find_int(json, "max_tokens", name, 1, kMostTokens).value_or(record.max_tokens);
  const std::string metric = find_string(json, "metric", name).value_or("exact_match");
  record.rouge = metric == "rouge";
  if (!record.rouge && metric != "exact_match")
    fail(ErrorKind::BadFile, "{}: \"metric\" is \"{}\"; expected exact_match or rouge", name,
         metric);
}

TaskRecord record_of(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: {}; expected an object with \"context\"", name, brief(json));
  TaskRecord record;
  record.context = get_string(json, "context", name);
  if (json.contains("choices") == json.contains("target"))
    fail(ErrorKind::BadFile, "{}: expected either \"choices\" and \"gold\", or \"target\"", name);
  if (json.contains("choices")) {
    record.choices = texts_of(json, "choices", name);
    if (record.choices.size() < 2)
      fail(ErrorKind::BadFile, "{}: one choice; expected at least 2", name);
    record.gold = get_int(json, "gold", name, 0, std::ssize(record.choices) - 1);
  } else {
    read_generated(json, name, record);
  }
  return record;
}

}  // namespace

std::string stripped(const std::string& text, bool at_end) {
  const std::vector<std::string_view> words = infer::words_of(text);
  if (words.empty()) return "";
  const char* const end =
      at_end ? words.back().data() + words.back().size() : text.data() + text.size();
  return {words.front().data(), end};
}

TaskRecords read_task_records(const std::string& file) {
  if (!is_file(file) && is_named_task(file)) return read_named_task(file);
  TaskRecords all;
  text::each_json_record(file, [&](const std::string& line, const std::string& name) {
    all.records.push_back(record_of(parse_json(line, name), name));
  });
  if (all.records.empty())
    fail(ErrorKind::BadFile, "{}: no records; expected JSON lines with \"context\"", file);
  return all;
}

std::string context_with_shots(const TaskRecords& all, size_t number, int64_t shots,
                               const std::string& delimiter) {
  const TaskRecord& record = all.records[number];
  const bool others = all.examples.empty();
  const std::vector<TaskRecord>& examples = others ? all.records : all.examples;
  std::string text = record.description;
  for (size_t i = 0; i < examples.size() && shots > 0; ++i) {
    if ((others && i == number) || examples[i].group != record.group) continue;
    text += examples[i].context + delimiter + examples[i].answer() + "\n\n";
    --shots;
  }
  return text + record.context;
}

}  // namespace fovea
