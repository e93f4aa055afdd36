#include "calls/call_reader.h"

#include <algorithm>

#include "calls/lenient_value.h"

namespace fovea::text {
namespace {

using nlohmann::ordered_json;

// The characters that a character of a format stands for; nullptr: only itself.
const char* characters_of(char c) {
  switch (c) {
    case CallFormat::kDigits: return "0123456789";
    case CallFormat::kId: return "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    case CallFormat::kIsText:
    case CallFormat::kType: return "abcdefghijklmnopqrstuvwxyz";
    default: return nullptr;
  }
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// JSON may have white space before these characters.
bool is_bracket(char c) { return std::string_view("{}[]\",:").find(c) != std::string_view::npos; }

bool is_text_schema(const ordered_json& schema) {
  if (!schema.is_object()) return false;
  // Such a text is enforced as a JSON string.
  if (schema.contains("pattern") && (schema.contains("minLength") || schema.contains("maxLength")))
    return false;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_array()) return type->size() == 1 && (*type)[0] == "string";
    return *type == "string";
  }
  const auto all_texts = [](const ordered_json& values) {
    return values.is_array() && !values.empty() &&
           std::ranges::all_of(values, [](const ordered_json& each) { return each.is_string(); });
  };
  if (schema.contains("enum")) return all_texts(schema["enum"]);
  if (schema.contains("const")) return schema["const"].is_string();
  return false;
}

// Returns the value of an argument that is not a text: JSON or a literal of Python; anything else
// is a text.
ordered_json value_of(std::string_view text) {
  size_t at = 0;
  const auto value = lenient_value(text, at);
  return value && after_space(text, at) == text.size() ? *value : ordered_json(text);
}

}  // namespace

bool Signature::takes_text(const std::string& argument) const {
  const auto properties = parameters.find("properties");
  if (properties == parameters.end() || !properties->is_object()) return false;
  const auto found = properties->find(argument);
  return found != properties->end() && is_text_schema(*found);
}

ordered_json parameters_of(const CallableFunction& function) {
  ordered_json schema = ordered_json::parse(function.parameters, nullptr, false);
  if (!schema.is_object()) schema = ordered_json::object();
  bool typed = false;
  for (const auto& member : schema.items())
    typed |= member.key() == "type" || member.key() == "$ref" || member.key().ends_with("Of");
  if (!typed) schema["type"] = "object";
  return schema;
}

std::vector<Signature> signatures_of(const std::vector<CallableFunction>& functions) {
  std::vector<Signature> signatures;
  for (const CallableFunction& function : functions)
    signatures.push_back({function.name, parameters_of(function)});
  return signatures;
}

Matched match(std::string_view text, size_t at, std::string_view part) {
  for (const char expected : part) {
    if (is_space(expected)) {
      at = after_space(text, at);
      continue;
    }
    if (const char* const taken = characters_of(expected)) {
      const size_t end = std::min(text.find_first_not_of(taken, at), text.size());
      if (end == at && at < text.size()) return {Matched::no};
      if (end == text.size()) return {Matched::more, end};
      at = end;
      continue;
    }
    if (at < text.size() && is_space(text[at]) && is_bracket(expected)) at = after_space(text, at);
    if (at == text.size()) return {Matched::more, at};
    if (text[at] != expected) return {Matched::no};
    ++at;
  }
  return {Matched::yes, at};
}

void CallReader::read(std::string_view text, bool ended, std::vector<MessagePart>& parts) {
  while (!done() && !failed() && step(text, ended, parts)) {
  }
}

bool CallReader::step(std::string_view text, bool ended, std::vector<MessagePart>& parts) {
  switch (phase_) {
    case Phase::begin: return expect(text, format_->begin, Phase::call);
    case Phase::call: return name(text);
    case Phase::arguments: return arguments(text, ended, parts);
    case Phase::call_end:
      if (format_->in_object() && !skip_members(text, ended)) return false;
      if (!expect(text, format_->call_end, Phase::next)) {
        // A text may end before the mark, since some models end it there.
        if (ended && !failed()) phase_ = Phase::done, ++calls_;
        return false;
      }
      ++calls_;
      return true;
    case Phase::next: return next(text, ended);
    default: return false;
  }
}

bool CallReader::expect(std::string_view text, std::string_view part, Phase next) {
  const Matched found = match(text, at_, part);
  if (found.result == Matched::no) phase_ = Phase::failed;
  if (found.result != Matched::yes) return false;
  at_ = found.end;
  phase_ = next;
  return true;
}

// Skips members of the object of a call after its arguments, such as an id. Returns false if the
// text ends within one.
bool CallReader::skip_members(std::string_view text, bool ended) {
  while (true) {
    size_t at = after_space(text, at_);
    if (at == text.size() || text[at] != ',') return at < text.size() || ended;
    ++at;
    const auto key = lenient_value(text, at);
    at = after_space(text, at);
    if (!key || at == text.size() || text[at] != ':') return ended;
    ++at;
    if (!lenient_value(text, at)) return ended;
    at_ = at;
  }
}

// Reads the text before a name, the name and the text after it.
bool CallReader::name(std::string_view text) {
  const Matched head = match(text, after_space(text, at_), format_->call);
  if (head.result == Matched::no) phase_ = Phase::failed;
  if (head.result != Matched::yes) return false;
  bool may_follow = head.end == text.size();
  for (const Signature& function : *functions_) {
    const std::string_view rest = text.substr(head.end);
    if (!rest.starts_with(function.name)) {
      may_follow |= std::string_view(function.name).starts_with(rest);
      continue;
    }
    const Matched after = match(text, head.end + function.name.size(), format_->arguments);
    may_follow |= after.result == Matched::more;
    if (after.result != Matched::yes) continue;
    // Another function's name may continue this one.
    if (after.end == text.size() && *format_->arguments == '\0') return false;
    function_ = &function;
    at_ = after.end;
    scanned_ = at_;
    depth_ = 0;
    begun_ = any_argument_ = in_string_ = escaped_ = false;
    worth_ = 0;
    phase_ = Phase::arguments;
    return true;
  }
  if (!may_follow) phase_ = Phase::failed;
  return false;
}

void CallReader::add(std::string json, std::vector<MessagePart>& parts) {
  MessagePart part{MessagePart::call, std::move(json), calls_, function_->name};
  part.begins = !std::exchange(begun_, true);
  parts.push_back(std::move(part));
}

void CallReader::add_argument(const std::string& name, const ordered_json& value,
                              std::vector<MessagePart>& parts) {
  const char* const before = std::exchange(any_argument_, true) ? ", " : "{";
  add(before + json_line(ordered_json(name)) + ": " + json_line(value), parts);
}

void CallReader::end_arguments(std::vector<MessagePart>& parts) {
  add(any_argument_ ? "}" : "{}", parts);
  phase_ = Phase::call_end;
}

bool CallReader::arguments(std::string_view text, bool ended, std::vector<MessagePart>& parts) {
  switch (format_->style) {
    case ArgumentStyle::json: return json_arguments(text, parts);
    case ArgumentStyle::tagged: return tagged_argument(text, parts);
    case ArgumentStyle::keywords: return keyword_arguments(text, ended, parts);
    case ArgumentStyle::braces: return brace_arguments(text, ended, parts);
  }
  return false;
}

// Passes on the text of an object up to the bracket that ends it.
bool CallReader::json_arguments(std::string_view text, std::vector<MessagePart>& parts) {
  if (depth_ == 0) {
    at_ = scanned_ = after_space(text, at_);
    if (at_ == text.size()) return false;
    if (text[at_] != '{') {
      phase_ = Phase::failed;
      return false;
    }
  }
  bool complete = false;
  for (; scanned_ < text.size() && !complete; ++scanned_) {
    const char c = text[scanned_];
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        in_string_ = false;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      complete = --depth_ == 0;
    }
  }
  if (scanned_ > at_) add(std::string(text.substr(at_, scanned_ - at_)), parts);
  at_ = scanned_;
  if (complete) phase_ = Phase::call_end;
  return complete;
}

bool CallReader::tagged_argument(std::string_view text, std::vector<MessagePart>& parts) {
  const Matched key = match(text, after_space(text, at_), format_->key);
  if (key.result == Matched::more) return false;
  if (key.result == Matched::no) {
    at_ = after_space(text, at_);
    end_arguments(parts);
    return true;
  }
  // The name ends where the mark after it begins.
  const std::string_view middle = format_->value, last = format_->value_end;
  const std::string_view mark = trimmed(middle);
  const size_t name_end = text.find(mark.substr(0, mark.find_first_of("\3\4\n")), key.end);
  if (name_end == std::string_view::npos) return false;
  const std::string name(trimmed(text.substr(key.end, name_end - key.end)));
  const Matched before = match(text, name_end, mark);
  if (before.result == Matched::no) phase_ = Phase::failed;
  if (before.result != Matched::yes) return false;
  size_t begin = before.end;
  const std::string_view type = text.substr(name_end, begin - name_end);
  std::string end_mark(trimmed(last));
  if (format_->cdata && text.substr(begin).starts_with(kCdata)) {
    begin += kCdata.size();
    end_mark.insert(0, kCdataEnd);
  }
  scanned_ = std::max(scanned_, begin);
  const size_t end = text.find(end_mark, scanned_);
  if (end == std::string_view::npos) {
    scanned_ = std::max(begin, text.size() - std::min(text.size(), end_mark.size()));
    return false;
  }
  // Texts keep their white space, except for a line break of the format at each end.
  if (middle.ends_with('\n') && begin < end && text[begin] == '\n') ++begin;
  size_t value_end = end;
  if (last.starts_with('\n') && value_end > begin && text[value_end - 1] == '\n') --value_end;
  const std::string value(text.substr(begin, value_end - begin));
  const bool is_text = function_->takes_text(name) || type.find("\"true\"") != type.npos ||
                       type.find("\"string\"") != type.npos;
  add_argument(name, is_text ? ordered_json(value) : value_of(trimmed(value)), parts);
  at_ = scanned_ = end + end_mark.size();
  return true;
}

// Reading arguments again from their beginning takes time in proportion to their length, so that
// it is done only when they have grown by a part of it.
bool CallReader::worth_reading(std::string_view text, bool ended) {
  const size_t length = text.size() - at_;
  if (!ended && length < worth_) return false;
  worth_ = length + length / 8;
  return true;
}

bool CallReader::keyword_arguments(std::string_view text, bool ended,
                                   std::vector<MessagePart>& parts) {
  if (!worth_reading(text, ended)) return false;
  ordered_json arguments = ordered_json::object();
  size_t at = after_space(text, at_);
  while (at < text.size() && text[at] != ')') {
    const size_t sign = text.find('=', at);
    if (sign == std::string_view::npos) return false;
    const std::string name(trimmed(text.substr(at, sign - at)));
    at = sign + 1;
    auto value = lenient_value(text, at);
    if (!value) return false;
    at = after_space(text, at);
    if (at == text.size()) return false;
    arguments[name] = *std::move(value);
    if (text[at] == ',')
      at = after_space(text, at + 1);
    else if (text[at] != ')')
      return phase_ = Phase::failed, false;
  }
  if (at >= text.size()) return false;
  for (const auto& [name, value] : arguments.items()) add_argument(name, value, parts);
  at_ = at;
  end_arguments(parts);
  return true;
}

bool CallReader::brace_arguments(std::string_view text, bool ended,
                                 std::vector<MessagePart>& parts) {
  if (!worth_reading(text, ended)) return false;
  size_t at = after_space(text, at_);
  if (at < text.size() && text[at] != '{') return phase_ = Phase::failed, false;
  const auto arguments = lenient_value(text, at, format_->key);
  if (!arguments) return false;
  for (const auto& [name, value] : arguments->items()) add_argument(name, value, parts);
  at_ = at;
  end_arguments(parts);
  return true;
}

// After a call: another one, or the end of the section.
bool CallReader::next(std::string_view text, bool ended) {
  const std::string another = std::string(format_->separator) + format_->call;
  const size_t begin = after_space(text, at_);
  if (begin == text.size() && !ended) return false;
  const Matched end = match(text, begin, format_->end);
  const bool has_end = *format_->end != '\0';
  if (has_end && end.result == Matched::yes) {
    at_ = end.end;
    phase_ = Phase::done;
    return false;
  }
  if (has_end && end.result == Matched::more && !ended) return false;
  Matched more = format_->many ? match(text, begin, another) : Matched{Matched::no};
  // JSON objects also follow each other without a separator.
  const bool directly = more.result == Matched::no && format_->many && format_->in_object();
  if (directly) more = match(text, begin, format_->call);
  if (more.result == Matched::yes && begin < text.size()) {
    if (!directly) at_ = match(text, begin, format_->separator).end;
    phase_ = Phase::call;
    return true;
  }
  const bool may = more.result == Matched::more || (has_end && end.result == Matched::more) ||
                   more.result == Matched::yes;
  if (may && !ended) return false;
  phase_ = may || !has_end ? Phase::done : Phase::failed;
  return false;
}

}  // namespace fovea::text
