#include "data/conversations.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "base/weighted_path.h"
#include "data/lines.h"

namespace fovea {
namespace {

using Record = nlohmann::ordered_json;

constexpr double kMostWeight = 1000;

// The other names of roles that files of "conversations" use.
const std::map<std::string, std::string>& role_names() {
  static const std::map<std::string, std::string> names = {{"human", "user"},
                                                           {"user", "user"},
                                                           {"gpt", "assistant"},
                                                           {"assistant", "assistant"},
                                                           {"model", "assistant"},
                                                           {"chatgpt", "assistant"},
                                                           {"bot", "assistant"},
                                                           {"system", "system"},
                                                           {"tool", "tool"},
                                                           {"observation", "tool"},
                                                           {"function_response", "tool"}};
  return names;
}

[[noreturn]] void refuse(const std::string& place, const std::string& key, const Record* value,
                         const char* expected) {
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", place, key,
       value == nullptr ? "missing" : brief(nlohmann::json(*value)), expected);
}

// Returns the value of a key; null if the key is missing or its value is null.
const Record* found(const Record& record, const char* key) {
  const auto at = record.find(key);
  return at == record.end() || at->is_null() ? nullptr : &*at;
}

std::string text_under(const Record& record, const char* key, const std::string& place,
                       const std::string& path) {
  const Record* const value = found(record, key);
  if (value == nullptr || !value->is_string()) refuse(place, path, value, "a text");
  return value->get<std::string>();
}

std::string optional_text(const Record& record, const char* key, const std::string& place) {
  return found(record, key) == nullptr ? "" : text_under(record, key, place, key);
}

// Makes the conversation of one record.
class RecordReader {
 public:
  RecordReader(const Record& record, std::string place) : record_(record) {
    made_.place = std::move(place);
  }

  Conversation read_messages(const char* key) && {
    add_messages(key);
    read_tools();
    return std::move(made_);
  }
  Conversation read_completion(const char* prompt, const char* key) && {
    read_prompt(prompt, key);
    return std::move(made_);
  }

  Conversation read() && {
    if (!record_.is_object())
      fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"messages\"", made_.place,
           brief(nlohmann::json(record_)));
    if (record_.contains("messages")) {
      add_messages("messages");
      read_tools();
    } else if (record_.contains("conversations")) {
      add_turns();
      read_tools();
    } else if (record_.contains("prompt") || record_.contains("completion")) {
      read_prompt("prompt", "completion");
    } else if (record_.contains("instruction") || record_.contains("output")) {
      read_instruction();
    } else {
      refuse(made_.place, "messages", nullptr,
             "a conversation: \"messages\", \"conversations\", \"prompt\" and \"completion\", or "
             "\"instruction\" and \"output\"");
    }
    return std::move(made_);
  }

  // Reads a record with a prompt, and adds an empty answer.
  Conversation read_prompt_alone() && {
    if (!record_.is_object())
      fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"prompt\"", made_.place,
           brief(nlohmann::json(record_)));
    const Record* const prompt = found(record_, "prompt");
    const bool messages = prompt == nullptr && record_.contains("messages");
    if (!messages && (prompt == nullptr || !(prompt->is_string() || prompt->is_array())))
      refuse(made_.place, "prompt", prompt, "a text or a list of messages");
    if (messages || prompt->is_array()) {
      add_messages(messages ? "messages" : "prompt");
      if (made_.messages.back().answer)
        fail(ErrorKind::BadFile,
             "{}: {} ends with a message of the role \"assistant\"; expected a prompt", made_.place,
             messages ? "messages" : "prompt");
    } else {
      made_.plain = {prompt->get<std::string>(), ""};
      add_text("user", made_.plain->prompt);
    }
    made_.first_trained = made_.messages.size();
    add_text("assistant", "");
    read_tools();
    return std::move(made_);
  }

 private:
  void add(const std::string& role, const Record& message) {
    made_.messages.push_back({json_line(message), role == "assistant"});
  }
  void add_text(const std::string& role, const std::string& content) {
    add(role, Record{{"role", role}, {"content", content}});
  }

  const Record& list_under(const char* key, const char* expected) const {
    const Record* const list = found(record_, key);
    if (list == nullptr || !list->is_array() || list->empty())
      refuse(made_.place, key, list, expected);
    return *list;
  }

  void add_messages(const char* key) {
    const Record& list = list_under(key, "a list of messages");
    for (size_t i = 0; i < list.size(); ++i) {
      const Record& message = list[i];
      const std::string path = fmt::format("{}[{}]", key, i);
      if (!message.is_object())
        refuse(made_.place, path, &message, "an object with \"role\" and \"content\"");
      const std::string role = text_under(message, "role", made_.place, path + ".role");
      const Record* const content = found(message, "content");
      const bool written = content == nullptr
                               ? message.contains("tool_calls") || message.contains("content")
                               : content->is_string() || content->is_array();
      if (!written) refuse(made_.place, path + ".content", content, "a text or a list of parts");
      add(role, message);
    }
  }

  void add_turns() {
    const std::string system = optional_text(record_, "system", made_.place);
    if (!system.empty()) add_text("system", system);
    const Record& list = list_under("conversations", "a list of turns");
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string path = fmt::format("conversations[{}]", i);
      if (!list[i].is_object())
        refuse(made_.place, path, &list[i], "an object with \"from\" and \"value\"");
      const std::string from = text_under(list[i], "from", made_.place, path + ".from");
      const auto role = role_names().find(from);
      if (role == role_names().end())
        refuse(made_.place, path + ".from", &list[i]["from"], "human, gpt, system or tool");
      add_text(role->second, text_under(list[i], "value", made_.place, path + ".value"));
    }
  }

  void read_prompt(const char* key, const char* completion) {
    const Record* const prompt = found(record_, key);
    if (prompt != nullptr && prompt->is_array()) {
      add_messages(key);
      made_.first_trained = made_.messages.size();
      add_messages(completion);
      return read_tools();
    }
    made_.plain = {text_under(record_, key, made_.place, key),
                   text_under(record_, completion, made_.place, completion)};
    add_text("user", made_.plain->prompt);
    add_text("assistant", made_.plain->completion);
  }

  void read_instruction() {
    const std::string system = optional_text(record_, "system", made_.place),
                      input = optional_text(record_, "input", made_.place);
    std::string question = text_under(record_, "instruction", made_.place, "instruction");
    if (!input.empty()) question += "\n" + input;
    if (!system.empty()) add_text("system", system);
    add_text("user", question);
    add_text("assistant", text_under(record_, "output", made_.place, "output"));
  }

  // Some data sets store the list as its JSON text.
  void read_tools() {
    const Record* given = found(record_, "tools");
    if (given == nullptr) return;
    Record parsed;
    if (given->is_string()) {
      const std::string& text = given->get_ref<const std::string&>();
      if (is_blank(text)) return;
      parsed = Record::parse(text, nullptr, false);
      if (parsed.is_array()) given = &parsed;
    }
    if (!given->is_array()) refuse(made_.place, "tools", given, "a list of function schemas");
    if (!given->empty()) made_.tools = json_line(*given);
  }

  const Record& record_;
  Conversation made_;
};

Record parsed_line(std::string_view line, const std::string& place) try {
  return parse_ordered_json(line, place);
} catch (const JsonFault& fault) {
  fail(ErrorKind::BadFile, "{}; expected one JSON object per line", fault.what());
}

uint64_t hash_of(const Conversations& conversations) {
  Hasher hasher;
  const auto add = [&](std::string_view text) {
    hasher.add(text);
    hasher.add(std::string_view("\0", 1));
  };
  for (const Conversations::File& file : conversations.files) add(fmt::format("{}", file.weight));
  for (const Conversation& record : conversations.records) {
    add(fmt::format("{} {} {}", record.file, record.first_trained, record.plain.has_value()));
    add(record.tools);
    for (const Conversation::Message& message : record.messages) add(message.json);
  }
  return hasher.hash();
}

}  // namespace

Conversations::File weighted_file(const std::string& given) {
  const auto [path, weight] = split_weight(given);
  if (!weight || is_file(given)) return {given};
  check_field(*weight > 0 && *weight <= kMostWeight, "data",
              "{} has the weight {}; expected more than 0, at most {}", given, *weight,
              kMostWeight);
  return {path, *weight};
}

std::vector<WeightedGroup> groups_of(const std::vector<Conversations::File>& files,
                                     const std::vector<size_t>& file_of) {
  std::vector<WeightedGroup> groups;
  size_t begin = 0;
  for (size_t file = 0; file < files.size(); ++file) {
    size_t end = begin;
    while (end < file_of.size() && file_of[end] == file) ++end;
    groups.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end), files[file].weight});
    begin = end;
  }
  return groups;
}

void check_unweighted(const std::vector<Conversations::File>& files, const char* field) {
  for (const Conversations::File& file : files)
    check_field(file.weight == 1, field,
                "{} has a weight, which only data for training has; expected a file", file.path);
}

Conversation read_messages(const Record& record, const std::string& place, const char* key) {
  return RecordReader(record, place).read_messages(key);
}

Conversation read_completion(const Record& record, const std::string& place, const char* completion,
                             const char* prompt) {
  return RecordReader(record, place).read_completion(prompt, completion);
}

Conversations read_conversations(const std::vector<std::string>& files) {
  Conversations all;
  for (const std::string& given : files) {
    all.files.push_back(weighted_file(given));
    each_json_line(all.files.back().path, [&](std::string_view line, const std::string& place) {
      all.records.push_back(RecordReader(parsed_line(line, place), place).read());
      all.records.back().file = all.files.size() - 1;
    });
  }
  if (all.records.empty())
    fail(ErrorKind::BadFile, "{}: contains no conversation; expected at least one", files.front());
  all.hash = hash_of(all);
  return all;
}

Prompts read_prompts(const std::vector<std::string>& files) {
  Prompts prompts;
  Hasher hasher;
  for (const std::string& given : files) {
    prompts.files.push_back(weighted_file(given));
    const auto& [path, weight] = prompts.files.back();
    if (weight != 1) hasher.add(fmt::format("{}\n", weight));
    each_json_line(path, [&](std::string_view line, const std::string& place) {
      const Record record = parsed_line(line, place);
      Prompt& made = prompts.all.emplace_back();
      made.conversation = RecordReader(record, place).read_prompt_alone();
      made.conversation.file = prompts.files.size() - 1;
      made.record = json_line(record);
      hasher.add(made.record + "\n");
    });
  }
  if (prompts.all.empty())
    fail(ErrorKind::BadFile, "{}: contains no prompt; expected at least one", files.front());
  prompts.hash = hasher.hash();
  return prompts;
}

namespace {

bool begins_with_conversation(const std::string& path) try {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (!is_file(path) || (ending != ".jsonl" && ending != ".json")) return false;
  const Record record = parse_ordered_json(first_json_line(path), path);
  const auto has = [&](const char* key) { return record.contains(key); };
  return record.is_object() && !has("text") &&
         (has("messages") || has("conversations") || has("prompt") || has("completion") ||
          has("instruction"));
} catch (const Error&) {
  return false;
}

}  // namespace

bool holds_conversations(const std::vector<std::string>& files) {
  return !files.empty() && begins_with_conversation(weighted_file(files.front()).path);
}

TextPairs read_pairs_of_messages(const std::vector<std::string>& files, const char* field) {
  const Conversations all = read_conversations(files);
  for (const Conversations::File& file : all.files)
    check_field(file.weight == 1, field,
                "{} has a weight, which pairs of texts do not have; expected a file", file.path);
  TextPairs pairs;
  for (const Conversation& record : all.records) {
    std::vector<std::string> texts;
    for (const Conversation::Message& message : record.messages) {
      const Record parsed = Record::parse(message.json);
      const bool last = message.answer && texts.size() == 1,
                 first = texts.empty() && parsed.value("role", "") == "user";
      if (!(first || last) || record.messages.size() != 2 || !record.tools.empty())
        fail(ErrorKind::BadFile,
             "{}: has {} messages{}; expected one of a user and its answer, since the model is an "
             "encoder-decoder",
             record.place, record.messages.size(), record.tools.empty() ? "" : " and tools");
      texts.push_back(text_under(parsed, "content", record.place, "content"));
    }
    pairs.sources.push_back(texts.at(0));
    pairs.targets.push_back(texts.at(1));
  }
  finish(pairs);
  if (pairs.sources.empty())
    fail(ErrorKind::BadFile, "{}: contains no pair of texts; expected at least one",
         all.files.front().path);
  return pairs;
}

}  // namespace fovea
