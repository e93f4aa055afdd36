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
#include "fovea/core/excerpt.h"
#include "fovea/text/text_lines.h"
#include "records/json_records.h"

namespace fovea::train {
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

[[noreturn]] void refuse(const std::string& location, const std::string& key, const Record* value,
                         const char* expected) {
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", location, key,
       value == nullptr ? "missing" : brief(nlohmann::json(*value)), expected);
}

// Returns the value of a key; null if the key is missing or its value is null.
const Record* found(const Record& record, const char* key) {
  const auto at = record.find(key);
  return at == record.end() || at->is_null() ? nullptr : &*at;
}

std::string text_under(const Record& record, const char* key, const std::string& location,
                       const std::string& path) {
  const Record* const value = found(record, key);
  if (value == nullptr || !value->is_string()) refuse(location, path, value, "a text");
  return value->get<std::string>();
}

std::string optional_text(const Record& record, const char* key, const std::string& location) {
  return found(record, key) == nullptr ? "" : text_under(record, key, location, key);
}

// Returns the message of a turn whose value is the JSON text of a call, or of a list of calls.
Record message_of_call(const std::string& value, const std::string& location,
                       const std::string& path) {
  Record calls = Record::parse(value, nullptr, false);
  if (calls.is_object()) calls = Record::array({calls});
  Record made = Record::array();
  for (const Record& call : calls.is_array() ? calls : Record::array({nullptr})) {
    if (!call.is_object() || !call.contains("arguments") || !call.contains("name") ||
        !call["name"].is_string())
      refuse(location, path, &calls, "the JSON text of a call with \"name\" and \"arguments\"");
    made.push_back({{"type", "function"},
                    {"function", {{"name", call["name"]}, {"arguments", call["arguments"]}}}});
  }
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", made}};
}

Record message_of_turn(const Record& turn, const std::string& location, const std::string& path) {
  if (!turn.is_object() || !turn.contains("from")) return turn;
  const std::string from = text_under(turn, "from", location, path + ".from");
  const std::string value = text_under(turn, "value", location, path + ".value");
  if (from == "function_call") return message_of_call(value, location, path + ".value");
  const auto role = role_names().find(from);
  if (role == role_names().end())
    refuse(location, path + ".from", &turn["from"], "human, gpt, system, tool or function_call");
  Record message = {{"role", role->second}, {"content", value}};
  if (const Record* const weight = found(turn, "weight")) message["weight"] = *weight;
  return message;
}

// Makes the conversation of one record.
class RecordReader {
 public:
  RecordReader(const Record& record, std::string location) : record_(record) {
    made_.location = std::move(location);
  }
  // For a model that reads images, which are relative to the folder.
  RecordReader(const Record& record, const std::string& location, const std::string& folder)
      : RecordReader(record, location) {
    images_in_ = {folder, location};
    if (record.is_object()) listed_ = listed_images(record, *images_in_);
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
      fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"messages\"", made_.location,
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
      refuse(made_.location, "messages", nullptr,
             "a conversation: \"messages\", \"conversations\", \"prompt\" and \"completion\", or "
             "\"instruction\" and \"output\"");
    }
    if (marks_ != listed_.size())
      fail(ErrorKind::BadFile, "{}: {} images for {} marks <image>; expected one for each",
           made_.location, listed_.size(), marks_);
    return std::move(made_);
  }

  // Reads a record with a prompt, and adds an empty answer.
  Conversation read_prompt_alone() && {
    if (!record_.is_object())
      fail(ErrorKind::BadFile, "{}: is {}; expected an object with \"prompt\"", made_.location,
           brief(nlohmann::json(record_)));
    const Record* const prompt = found(record_, "prompt");
    const bool messages = prompt == nullptr && record_.contains("messages");
    if (!messages && (prompt == nullptr || !(prompt->is_string() || prompt->is_array())))
      refuse(made_.location, "prompt", prompt, "a text or a list of messages");
    if (messages || prompt->is_array()) {
      add_messages(messages ? "messages" : "prompt");
      if (made_.messages.back().answer)
        fail(ErrorKind::BadFile,
             "{}: {} ends with a message of the role \"assistant\"; expected a prompt",
             made_.location, messages ? "messages" : "prompt");
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
  void add(const Record& message, const std::string& path) {
    Conversation::Message& made = made_.messages.emplace_back();
    made.answer = message["role"].get<std::string>() == "assistant";
    const Record* const weight = found(message, "weight");
    const Record* const content = found(message, "content");
    const bool marked = !listed_.empty() && content != nullptr && content->is_string(),
               parts = content != nullptr && content->is_array();
    if (weight == nullptr && !parts && !marked) {
      made.json = json_line(message);
      return;
    }
    Record plain = message;
    if (parts) plain["content"] = shown_parts(*content, path + ".content");
    if (marked) plain["content"] = with_listed_images(content->get<std::string>());
    if (weight != nullptr) {
      if (!weight->is_number() || (weight->get<double>() != 0 && weight->get<double>() != 1))
        refuse(made_.location, path + ".weight", weight, "0 or 1");
      made.trained = weight->get<double>() == 1;
      plain.erase("weight");
    }
    made.json = json_line(plain);
  }

  // Most templates expect a text, so parts without an image are joined as the server does.
  Record shown_parts(const Record& parts, const std::string& path) {
    Record shown = Record::array();
    std::string text;
    std::vector<ImagePart>& images = made_.messages.back().images;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string key = fmt::format("{}[{}]", path, i);
      if (images_in_) {
        if (const auto image = image_part(parts[i], *images_in_, key)) {
          images.push_back(*image);
          shown.push_back({{"type", "image"}});
          continue;
        }
      }
      const bool has_text = parts[i].is_object() && parts[i].contains("text") &&
                            parts[i]["text"].is_string() &&
                            (!parts[i].contains("type") || parts[i]["type"] == Record("text"));
      if (!has_text)
        refuse(made_.location, key, &parts[i],
               images_in_
                   ? "a part of the type text or image"
                   : "a part of the type text, with \"text\", since the model reads no images");
      shown.push_back({{"type", "text"}, {"text", parts[i]["text"]}});
      text += (i == 0 ? "" : "\n") + parts[i]["text"].get<std::string>();
    }
    return images.empty() ? Record(text) : shown;
  }

  Record with_listed_images(const std::string& text) {
    Record parts = parts_of_marked(text);
    std::vector<ImagePart>& images = made_.messages.back().images;
    for (const Record& part : parts) {
      if (part["type"] != Record("image")) continue;
      if (marks_ < listed_.size()) images.push_back(listed_[marks_]);
      ++marks_;
    }
    return images.empty() ? Record(text) : parts;
  }

  void add_text(const std::string& role, const std::string& content) {
    add(Record{{"role", role}, {"content", content}}, "");
  }

  const Record& list_under(const char* key, const char* expected) const {
    const Record* const list = found(record_, key);
    if (list == nullptr || !list->is_array() || list->empty())
      refuse(made_.location, key, list, expected);
    return *list;
  }

  void add_messages(const char* key) { add_list(list_under(key, "a list of messages"), key); }

  void add_list(const Record& list, const std::string& key) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Record& message = list[i];
      const std::string path = fmt::format("{}[{}]", key, i);
      if (!message.is_object())
        refuse(made_.location, path, &message, "an object with \"role\" and \"content\"");
      text_under(message, "role", made_.location, path + ".role");
      const Record* const content = found(message, "content");
      const bool written = content == nullptr
                               ? message.contains("tool_calls") || message.contains("content")
                               : content->is_string() || content->is_array();
      if (!written) refuse(made_.location, path + ".content", content, "a text or a list of parts");
      add(message, path);
    }
  }

  void add_turns() {
    const std::string system = optional_text(record_, "system", made_.location);
    if (!system.empty()) add_text("system", system);
    add_list(messages_of_turns(list_under("conversations", "a list of turns"), made_.location,
                               "conversations"),
             "conversations");
  }

  void read_prompt(const char* key, const char* completion) {
    const Record* const prompt = found(record_, key);
    if (prompt != nullptr && prompt->is_array()) {
      add_messages(key);
      made_.first_trained = made_.messages.size();
      add_messages(completion);
      return read_tools();
    }
    made_.plain = {text_under(record_, key, made_.location, key),
                   text_under(record_, completion, made_.location, completion)};
    add_text("user", made_.plain->prompt);
    add_text("assistant", made_.plain->completion);
  }

  void read_instruction() {
    const std::string system = optional_text(record_, "system", made_.location),
                      input = optional_text(record_, "input", made_.location);
    std::string question = text_under(record_, "instruction", made_.location, "instruction");
    if (!input.empty()) question += "\n" + input;
    if (!system.empty()) add_text("system", system);
    read_history();
    add_text("user", question);
    add_text("assistant", text_under(record_, "output", made_.location, "output"));
  }

  // Earlier questions and their answers.
  void read_history() {
    const Record* const history = found(record_, "history");
    if (history == nullptr) return;
    const auto is_turn = [](const Record& turn) {
      return turn.is_array() && turn.size() == 2 && turn[0].is_string() && turn[1].is_string();
    };
    if (!history->is_array() || !std::all_of(history->begin(), history->end(), is_turn))
      refuse(made_.location, "history", history, "a list of pairs of a question and its answer");
    for (const Record& turn : *history) {
      add_text("user", turn[0].get<std::string>());
      add_text("assistant", turn[1].get<std::string>());
    }
  }

  // Some data sets store the list as its JSON text.
  void read_tools() {
    const Record* given = found(record_, "tools");
    if (given == nullptr) return;
    Record parsed;
    if (given->is_string()) {
      const std::string& text = given->get_ref<const std::string&>();
      if (text::is_blank(text)) return;
      parsed = Record::parse(text, nullptr, false);
      if (parsed.is_array()) given = &parsed;
    }
    if (!given->is_array()) refuse(made_.location, "tools", given, "a list of function schemas");
    if (!given->empty()) made_.tools = json_line(*given);
  }

  const Record& record_;
  Conversation made_;
  std::optional<ImageFolder> images_in_;  // unset: the model reads no images
  std::vector<ImagePart> listed_;         // under "image" or "images"
  size_t marks_ = 0;                      // which stand for them, so far
};

Record parsed_line(std::string_view line, const std::string& location) try {
  return parse_ordered_json(line, location);
} catch (const JsonFault& fault) {
  fail(ErrorKind::BadFile, "{}; expected a JSON object", fault.what());
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
    for (const Conversation::Message& message : record.messages) {
      add(message.json);
      if (!message.trained) add("weight 0");
    }
  }
  return hasher.hash();
}

}  // namespace

Conversations::File weighted_file(const std::string& given) {
  const auto [path, weight] = split_weight(given);
  if (!weight || is_file(given) || is_folder(given)) return {given};
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

Record messages_of_turns(const Record& list, const std::string& location, const std::string& key) {
  Record messages = Record::array();
  for (size_t i = 0; i < list.size(); ++i)
    messages.push_back(message_of_turn(list[i], location, fmt::format("{}[{}]", key, i)));
  return messages;
}

namespace {

std::string text_of_parts(const Record& parts) {
  std::string text;
  for (const Record& part : parts)
    text += part.contains("text") ? part["text"].get<std::string>() : "<image>";
  return text;
}

}  // namespace

std::string summary_of(const Conversation& conversation) {
  constexpr size_t kShownBytes = 60, kShownMessages = 4;
  std::string text;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    if (i == kShownMessages)
      return text + fmt::format(" and {} more", conversation.messages.size() - i);
    const Conversation::Message& message = conversation.messages[i];
    const Record parsed = Record::parse(message.json);
    Record content = parsed.value("content", Record());
    if (!message.images.empty()) content = text_of_parts(content);
    const std::string shown =
        content.is_string()
            ? fmt::format("\"{}\"", excerpt(content.get<std::string>(), kShownBytes))
            : brief(nlohmann::json(content));
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", excerpt(parsed.value("role", "")), shown);
    if (parsed.contains("tool_calls")) text += " with calls";
    if (message.answer && (!message.trained || i < conversation.first_trained))
      text += " (not trained)";
  }
  return text;
}

Conversation read_messages(const Record& record, const std::string& location, const char* key) {
  return RecordReader(record, location).read_messages(key);
}

Conversation read_completion(const Record& record, const std::string& location,
                             const char* completion, const char* prompt) {
  return RecordReader(record, location).read_completion(prompt, completion);
}

Conversations read_conversations(const std::vector<std::string>& files, bool images) {
  Conversations all;
  for (const std::string& given : files) {
    all.files.push_back(weighted_file(given));
    text::each_json_record(
        all.files.back().path, [&](std::string_view line, const std::string& location) {
          const Record record = parsed_line(line, location);
          all.records.push_back(
              images ? RecordReader(record, location, parent_of(all.files.back().path)).read()
                     : RecordReader(record, location).read());
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
    text::each_json_record(path, [&](std::string_view line, const std::string& location) {
      const Record record = parsed_line(line, location);
      Prompt& made = prompts.all.emplace_back();
      made.conversation = RecordReader(record, location).read_prompt_alone();
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
  if (!is_file(path) || !text::has_records(path)) return false;
  const Record record = parse_ordered_json(text::first_json_record(path), path);
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
      if (!message.trained)
        fail(ErrorKind::BadFile,
             "{}: has an answer of weight 0; expected a trained one, since the model is an "
             "encoder-decoder",
             record.location);
      if (!(first || last) || record.messages.size() != 2 || !record.tools.empty())
        fail(ErrorKind::BadFile,
             "{}: has {} messages{}; expected one of a user and its answer, since the model is an "
             "encoder-decoder",
             record.location, record.messages.size(), record.tools.empty() ? "" : " and tools");
      texts.push_back(text_under(parsed, "content", record.location, "content"));
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

}  // namespace fovea::train
