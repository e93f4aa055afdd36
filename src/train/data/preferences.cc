#include "data/preferences.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "records/json_records.h"

namespace fovea::train {
namespace {

using PreferenceRecord = nlohmann::ordered_json;

constexpr const char* kTag = "kto_tag";  // the label of an answer in some data sets
constexpr const char* kForms =
    "\"prompt\", \"chosen\" and \"rejected\", or \"prompt\", \"completion\" and \"label\"";

[[noreturn]] void refuse_key(const std::string& location, const char* key,
                             const PreferenceRecord& record, const char* expected) {
  const auto at = record.find(key);
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", location, key,
       at == record.end() ? "missing" : brief(nlohmann::json(*at)), expected);
}

bool has_list(const PreferenceRecord& record, const char* key) {
  return record.contains(key) && record[key].is_array();
}

// Returns the number of characters that two texts have in common at their beginning, without a
// space at its end, which belongs to the first word of an answer.
size_t common_characters(const std::string& a, const std::string& b) {
  size_t length =
      static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const auto inside = [&](const std::string& text) {
    return length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80;
  };
  while (length > 0 && (inside(a) || inside(b))) --length;
  if (length > 0 && a[length - 1] == ' ') --length;
  return length;
}

// Divides two lists of messages after those that they have in common.
void split_messages(Conversation& chosen, Conversation& rejected) {
  const auto same = [](const auto& a, const auto& b) { return a.json == b.json; };
  const auto at = std::mismatch(chosen.messages.begin(), chosen.messages.end(),
                                rejected.messages.begin(), rejected.messages.end(), same);
  size_t common = static_cast<size_t>(at.first - chosen.messages.begin());
  // Lists that are equal differ in nothing; their last message is the answer.
  common = std::min({common, chosen.messages.size() - 1, rejected.messages.size() - 1});
  chosen.first_trained = rejected.first_trained = common;
}

void check_answer(const Conversation& made, const char* key) {
  const bool answers = std::any_of(
      made.messages.begin() + static_cast<std::ptrdiff_t>(made.first_trained), made.messages.end(),
      [](const Conversation::Message& message) { return message.answer; });
  if (!answers)
    fail(ErrorKind::BadFile,
         "{}: {} has no message of the role \"assistant\" after the prompt; expected an answer",
         made.location, key);
}

// Reads a record with "chosen" and "rejected".
class PairReader {
 public:
  PairReader(const PreferenceRecord& record, const std::string& location)
      : record_(record), location_(location) {}

  Preference read() const {
    for (const char* key : {"chosen", "rejected"}) {
      if (!record_.contains(key) || !(record_[key].is_string() || record_[key].is_array()))
        refuse_key(location_, key, record_, "a text or a list of messages");
    }
    if (record_["chosen"].is_array() != record_["rejected"].is_array())
      refuse_key(location_, "rejected", record_,
                 record_["chosen"].is_array() ? "a list of messages, as \"chosen\" is"
                                              : "a text, as \"chosen\" is");
    Preference made = answers();
    made.margin = margin();
    check_answer(made.chosen, "chosen");
    check_answer(*made.rejected, "rejected");
    return made;
  }

 private:
  Preference answers() const {
    const bool prompted = record_.contains("prompt") && !record_["prompt"].is_null();
    if (!has_list(record_, "chosen")) return prompted ? of_keys(record_) : of_common_text();
    if (!prompted || record_["prompt"].is_string()) {
      Preference made = {read_messages(record_, location_, "chosen"),
                         read_messages(record_, location_, "rejected")};
      if (prompted && made.chosen.messages.front().answer && made.rejected->messages.front().answer)
        return of_text_prompt();
      split_messages(made.chosen, *made.rejected);
      if (made.chosen.messages.front().json != made.rejected->messages.front().json)
        fail(ErrorKind::BadFile,
             "{}: chosen and rejected begin with different messages; expected a common prompt, or "
             "\"prompt\"",
             location_);
      return made;
    }
    return of_keys(record_);
  }

  Preference of_keys(const PreferenceRecord& record) const {
    return {read_completion(record, location_, "chosen"),
            read_completion(record, location_, "rejected")};
  }

  Preference of_text_prompt() const {
    PreferenceRecord record = record_;
    record["prompt"] =
        PreferenceRecord::array({{{"role", "user"}, {"content", record_["prompt"]}}});
    return of_keys(record);
  }

  Preference of_common_text() const {
    PreferenceRecord record = record_;
    const auto chosen = record_["chosen"].get<std::string>(),
               rejected = record_["rejected"].get<std::string>();
    const size_t common = common_characters(chosen, rejected);
    if (common == 0)
      fail(ErrorKind::BadFile,
           "{}: prompt is missing, and chosen and rejected begin differently; expected \"prompt\"",
           location_);
    record["prompt"] = chosen.substr(0, common);
    record["chosen"] = chosen.substr(common);
    record["rejected"] = rejected.substr(common);
    return of_keys(record);
  }

  double margin() const {
    const auto at = record_.find("margin");
    if (at == record_.end() || at->is_null()) return 0;
    if (!at->is_number() || !std::isfinite(at->get<double>()))
      refuse_key(location_, "margin", record_, "a number");
    return at->get<double>();
  }

  const PreferenceRecord& record_;
  const std::string& location_;
};

Preference read_judged(const PreferenceRecord& record, const std::string& location) {
  const auto label = text::flag_of(record.value("label", PreferenceRecord()));
  if (!label) refuse_key(location, "label", record, "true or false");
  Preference made{.chosen = read_completion(record, location, "completion"), .rejected = {}};
  made.desirable = *label;
  check_answer(made.chosen, "completion");
  return made;
}

// Reads a record in the format of OpenAI's API: "input" with "messages" and optionally "tools",
// "preferred_output" and "non_preferred_output".
Preference read_outputs(const PreferenceRecord& record, const std::string& location) {
  constexpr const char *kPrompt = "input.messages", *kGood = "preferred_output",
                       *kBad = "non_preferred_output";
  const auto input = record.find("input");
  if (input == record.end() || !input->is_object())
    refuse_key(location, "input", record, "an object with \"messages\"");
  PreferenceRecord flat = {{kPrompt, input->value("messages", PreferenceRecord())},
                           {"tools", input->value("tools", PreferenceRecord())}};
  if (!has_list(flat, kPrompt)) refuse_key(location, kPrompt, flat, "a list of messages");
  for (const char* key : {kGood, kBad}) {
    if (!has_list(record, key)) refuse_key(location, key, record, "a list of messages");
    flat[key] = record[key];
  }
  Preference made = {read_completion(flat, location, kGood, kPrompt),
                     read_completion(flat, location, kBad, kPrompt)};
  check_answer(made.chosen, kGood);
  check_answer(*made.rejected, kBad);
  return made;
}

bool has_outputs(const PreferenceRecord& record) {
  return record.contains("preferred_output") || record.contains("non_preferred_output");
}

std::optional<PreferenceForm> form_of(const PreferenceRecord& record) {
  if (!record.is_object()) return std::nullopt;
  if (record.contains("chosen") || record.contains("rejected") || has_outputs(record))
    return PreferenceForm::pairs;
  if (record.contains("completion") && record.contains("label")) return PreferenceForm::judged;
  return record.contains(kTag) ? std::optional(PreferenceForm::judged) : std::nullopt;
}

std::string system_of(const PreferenceRecord& record) {
  const auto at = record.find("system");
  return at != record.end() && at->is_string() ? at->get<std::string>() : "";
}

// Returns the record in the form of the others: lists of "from" and "value" become messages, an
// answer that is one message becomes a list, and "conversations" with answers, or a last answer
// with kTag, become "prompt" and the answers.
PreferenceRecord in_messages(const PreferenceRecord& record, const std::string& location) {
  PreferenceRecord made = record;
  for (const char* key : {"prompt", "chosen", "rejected", "conversations", "messages"}) {
    const auto at = made.find(key);
    if (at == made.end()) continue;
    if (at->is_object()) *at = PreferenceRecord::array({*at});
    if (at->is_array()) *at = messages_of_turns(*at, location, key);
  }
  const char* list = made.contains("conversations") ? "conversations" : "messages";
  if (made.contains("prompt") || !has_list(made, list) || made[list].empty()) return made;
  PreferenceRecord prompt = made[list];
  if (made.contains(kTag)) {
    made["completion"] = PreferenceRecord::array({prompt.back()});
    made["label"] = made[kTag];
    prompt.erase(prompt.size() - 1);
  }
  const std::string system = system_of(made);
  if (!system.empty())
    prompt.insert(prompt.begin(), PreferenceRecord{{"role", "system"}, {"content", system}});
  made["prompt"] = prompt;
  return made;
}

Preference read_preference(std::string_view line, const std::string& location) {
  PreferenceRecord record;
  try {
    record = parse_ordered_json(line, location);
  } catch (const JsonFault& fault) {
    fail(ErrorKind::BadFile, "{}; expected a JSON object", fault.what());
  }
  const std::optional<PreferenceForm> form = form_of(record);
  if (!form && record.is_object() && record.contains("completion"))
    refuse_key(location, "label", record, "true or false");
  if (!form)
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with {}", location,
         brief(nlohmann::json(record)), kForms);
  if (has_outputs(record)) return read_outputs(record, location);
  const PreferenceRecord messages = in_messages(record, location);
  return *form == PreferenceForm::pairs ? PairReader(messages, location).read()
                                        : read_judged(messages, location);
}

void add_to(Hasher& hasher, const Conversation& conversation) {
  const auto add = [&](std::string_view text) {
    hasher.add(text);
    hasher.add(std::string_view("\0", 1));
  };
  add(fmt::format("{} {} {}", conversation.first_trained, conversation.messages.size(),
                  conversation.plain.has_value()));
  add(conversation.tools);
  for (const Conversation::Message& message : conversation.messages) {
    add(message.json);
    if (!message.trained) add("weight 0");
  }
}

uint64_t hash_of(const Preferences& all) {
  Hasher hasher;
  for (const Preference& record : all.records) {
    add_to(hasher, record.chosen);
    if (record.rejected) add_to(hasher, *record.rejected);
    hasher.add(
        fmt::format("{} {} {}", record.rejected.has_value(), record.desirable, record.margin));
  }
  // Without weights, the hash is that of the records alone.
  const bool weighted = std::any_of(all.files.begin(), all.files.end(),
                                    [](const auto& file) { return file.weight != 1; });
  if (!weighted) return hasher.hash();
  for (const Conversations::File& file : all.files) hasher.add(fmt::format(" {}", file.weight));
  for (const Preference& record : all.records) hasher.add(fmt::format(" {}", record.chosen.file));
  return hasher.hash();
}

}  // namespace

Preferences read_preferences(const std::vector<std::string>& files) {
  Preferences all;
  for (const std::string& given : files) {
    all.files.push_back(weighted_file(given));
    text::each_json_record(all.files.back().path,
                           [&](std::string_view line, const std::string& location) {
                             all.records.push_back(read_preference(line, location));
                             all.records.back().chosen.file = all.files.size() - 1;
                           });
  }
  if (all.records.empty())
    fail(ErrorKind::BadFile, "{}: contains no preference; expected lines with {}", files.front(),
         kForms);
  all.hash = hash_of(all);
  return all;
}

std::optional<PreferenceForm> preference_form(const std::vector<std::string>& files) try {
  if (files.empty()) return std::nullopt;
  const std::string path = weighted_file(files.front()).path;
  if (!is_file(path) || !text::has_records(path)) return std::nullopt;
  const PreferenceRecord record = parse_ordered_json(text::first_json_record(path), path);
  const std::optional<PreferenceForm> form = form_of(record);
  // Conversations may have labels of other kinds.
  if (form == PreferenceForm::judged && !record.contains(kTag) && !text::flag_of(record["label"]))
    return std::nullopt;
  return form;
} catch (const Error&) {
  return std::nullopt;
}

Conversation with_completion_of(const Conversation& prompt, const Conversation& other) {
  Conversation made = prompt;
  if (prompt.plain && other.plain) made.plain->completion = other.plain->completion;
  const size_t first = other.plain ? other.messages.size() - 1 : other.first_trained;
  made.messages.resize(prompt.plain ? prompt.messages.size() - 1 : prompt.first_trained);
  made.messages.insert(made.messages.end(),
                       other.messages.begin() + static_cast<std::ptrdiff_t>(first),
                       other.messages.end());
  if (!other.plain) made.plain.reset();
  return made;
}

}  // namespace fovea::train
