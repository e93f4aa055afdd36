#include <algorithm>
#include <set>

#include "base/error.h"
#include "calls/lenient_calls.h"
#include "calls/lenient_value.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

constexpr const char *kProbeName = "probe_name", *kProbeKey = "probe_key",
                     *kProbeValue = "probe_value";

// Returns a conversation with one call as the template shows it, or "" if it shows none.
std::string probe(const ChatFormat& chat) {
  const TemplateHabits& habits = chat.habits;
  const ordered_json object = {{kProbeKey, kProbeValue}};
  const char* const id = habits.short_ids ? "a1B2c3D4e" : "call_0123456789abcdef";
  const ordered_json call = {
      {"id", id},
      {"type", "function"},
      {"function",
       {{"name", kProbeName},
        {"arguments", habits.text_arguments ? ordered_json(object.dump()) : object}}}};
  const ordered_json schema = {{"type", "object"},
                               {"properties", {{kProbeKey, {{"type", "string"}}}}}};
  const ordered_json tool = {
      {"type", "function"},
      {"function", {{"name", kProbeName}, {"description", "probe"}, {"parameters", schema}}}};
  ordered_json content = habits.calls_without_content ? ordered_json() : ordered_json("");
  if (!habits.calls_without_content && !habits.calls_with_empty) content = "probe_content";
  const auto part = [&](const ordered_json& text) {
    return chat.knows_parts && text.is_string()
               ? ordered_json::array({{{"type", "text"}, {"text", text}}})
               : text;
  };
  const ordered_json messages = {{{"role", "user"}, {"content", part("probe_user")}},
                                 {{"role", "assistant"},
                                  {"content", part(content)},
                                  {"tool_calls", ordered_json::array({call})}},
                                 {{"role", "tool"},
                                  {"tool_call_id", id},
                                  {"name", kProbeName},
                                  {"content", part("probe_result")}}};
  ChatRequest request;
  request.messages = ChatValue::of(messages);
  request.tools = ChatValue::of(ordered_json::array({tool}));
  try {
    return chat.render(request);
  } catch (const Error&) {
    return {};
  }
}

bool is_probe(const MessagePart& part) {
  size_t at = 0;
  const auto arguments = lenient_value(part.text, at);
  return part.name == kProbeName && arguments &&
         *arguments == ordered_json{{kProbeKey, kProbeValue}};
}

// Returns whether the text begins with the call of the probe in this format.
bool begins_in(const CallFormat& format, std::string_view text,
               const std::vector<Signature>& functions) {
  if (!format.in_object()) {
    CallReader reader(format, functions);
    std::vector<MessagePart> parts;
    reader.read(text, true, parts);
    if (reader.calls() == 0 || parts.empty()) return false;
    for (size_t i = 1; i < parts.size(); ++i) parts[0].text += parts[i].text;
    return is_probe(parts[0]);
  }
  // Templates write an id or other members beside the name, which models need not.
  const std::string head = format.head();
  const Matched found = match(text, 0, head.substr(0, head.find('{')) + " ");
  if (found.result != Matched::yes || !text.substr(found.end).starts_with('{')) return false;
  const FoundCalls calls = find_calls(text.substr(found.end), functions);
  if (calls.parts.empty() || !is_probe(calls.parts[0])) return false;
  const std::string_view arguments = format.arguments, end = format.end;
  const std::string_view rest = text.substr(found.end, calls.end);
  const bool key = rest.find(arguments.substr(3, arguments.find(':') - 3)) != rest.npos;
  const size_t mark = end.find('<');
  return key && (mark == end.npos || text.find(end.substr(mark), found.end) != text.npos);
}

// Returns the format in which a template shows a call: the text of probe(). Of formats that differ
// in white space only, the one whose text the template has.
const CallFormat* shown_format(std::string_view text) {
  const std::vector<Signature> functions = {{kProbeName, ordered_json::object()}};
  const CallFormat* found = nullptr;
  for (const CallFormat& format : call_formats()) {
    for (size_t at = 0; at < text.size(); ++at) {
      const std::string_view rest = text.substr(at);
      if (!begins_in(format, rest, functions)) continue;
      const bool exact = rest.starts_with(format.head() + kProbeName + format.arguments);
      if (exact && (found == nullptr || *format.trigger != '\0')) return &format;
      if (found == nullptr) found = &format;
    }
  }
  return found;
}

// Returns the format whose marks the source of a template names, as in a description for the model.
const CallFormat* named_format(const std::string& source) {
  for (const CallFormat& format : call_formats()) {
    const std::string_view trigger = format.trigger, begin = format.begin;
    const auto has = [&](std::string_view mark) { return source.find(mark) != source.npos; };
    if (!trigger.empty() && has(trigger) && has(begin.substr(0, begin.find(' '))) &&
        has(format.key))
      return &format;
  }
  return nullptr;
}

const CallFormat* call_format_of(const ChatFormat& chat, std::string_view text) {
  const CallFormat* const shown = shown_format(text);
  // Some templates show calls as JSON without the marks that they ask the model for.
  if (shown != nullptr && std::string_view(shown->name) != "json") return shown;
  const CallFormat* const named = named_format(chat.source);
  return named != nullptr ? named : shown;
}

}  // namespace

MessageFormat message_format(const ChatFormat& chat) {
  MessageFormat format;
  const std::string text = probe(chat);
  format.calls = call_format_of(chat, text);
  if (format.calls != nullptr && *format.calls->generated != '\0')
    format.calls = find_call_format(format.calls->generated);
  for (const auto& [begin, end, needs_begin] : reasoning_marks()) {
    const char* const mark = needs_begin ? begin : end;  // a template may compose it
    if (chat.source.find(mark) == std::string::npos && text.find(mark) == std::string::npos)
      continue;
    format.reasoning_begin = begin;
    format.reasoning_end = end;
    break;
  }
  return format;
}

std::vector<int32_t> mark_ids(const MessageFormat& format, bool with_calls,
                              const Tokenizer& tokenizer) {
  std::vector<std::string> texts = {format.reasoning_begin, format.reasoning_end};
  const auto add = [&](const CallFormat& row) {
    if (with_calls)
      for (const char* text : {row.trigger, row.begin, row.call, row.arguments, row.call_end,
                               row.separator, row.end, row.key, row.value, row.value_end})
        texts.emplace_back(text);
    texts.insert(texts.end(), row.frames.begin(), row.frames.end());
  };
  if (format.calls != nullptr) {
    add(*format.calls);
  } else if (with_calls) {
    for (const CallFormat& row : call_formats()) add(row);
  }
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const std::string_view name = tokenizer.text_of(id);
    if (!name.empty() && std::ranges::any_of(texts, [&](const std::string& text) {
          return text.find(name) != std::string::npos;
        }))
      ids.push_back(id);
  }
  return ids;
}

void read_prompt(std::string_view prompt, MessageRules& rules) {
  const std::string& mark = rules.format.reasoning_begin;
  const size_t begin = mark.empty() ? std::string_view::npos : prompt.rfind(mark);
  rules.in_reasoning =
      begin != std::string_view::npos && after_space(prompt, begin + mark.size()) == prompt.size();
  const CallFormat* const calls = rules.format.calls;
  if (calls != nullptr && *calls->trigger != '\0' && prompt.ends_with(calls->trigger))
    rules.begun = calls->trigger;
}

std::string describe_tools(const std::string& tools, const CallFormat& format) {
  const bool json = format.style == ArgumentStyle::json;
  const std::string arguments =
      json ? "{\"NAME_OF_ARGUMENT\": VALUE}"
      : format.style == ArgumentStyle::tagged
          ? std::string(format.key) + "NAME_OF_ARGUMENT" + format.value + "VALUE" + format.value_end
      : format.style == ArgumentStyle::keywords ? "NAME_OF_ARGUMENT=VALUE"
                                                : "{NAME_OF_ARGUMENT:VALUE}";
  std::string example = format.head() + "NAME_OF_FUNCTION" + format.arguments + arguments +
                        format.call_end + format.end;
  if (const size_t at = example.find(CallFormat::kIsText); at != std::string::npos)
    example.replace(at, 1, "true|false");
  if (const size_t at = example.find(CallFormat::kType); at != std::string::npos)
    example.replace(at, 1, "TYPE");
  std::erase_if(example, [](char c) { return c == CallFormat::kDigits || c == CallFormat::kId; });
  return "You can call functions. Each line between <tools> and </tools> describes one by a JSON "
         "Schema:\n<tools>\n" +
         tools + "\n</tools>\nTo call a function, write this, and nothing after it:\n" + example +
         "\nThe result follows in the next message. Answer without a call if none is needed.";
}

}  // namespace fovea::text
