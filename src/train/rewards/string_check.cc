// The check of texts of OpenAI's API (grader string_check).

#include <algorithm>

#include "base/fields.h"
#include "base/ordered_json.h"
#include "rewards/reward_check.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::train {
namespace {

std::string lowercase_text(std::string_view text) {
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const text::utf8::Character character = text::utf8::first(text.substr(at));
    for (const char32_t each : text::unicode::lowercase(character.code_point))
      if (each != 0) text::utf8::append(lower, each);
    at += character.bytes;
  }
  return lower;
}

// A text with values of the record: "The answer is {{item.answer}}." A name may be a path, such as
// "item.solution.value".
class RecordTemplate {
 public:
  explicit RecordTemplate(const std::string& text) {
    std::string_view rest = text;
    for (size_t open = rest.find("{{"); open != rest.npos; open = rest.find("{{")) {
      const size_t close = rest.find("}}", open);
      check_field(close != rest.npos, "rewards", "string_check: {} has no }}}} after {{{{", text);
      parts_.push_back({std::string(rest.substr(0, open)), {}});
      const std::string name = trimmed(rest.substr(open + 2, close - open - 2));
      check_field(name.starts_with("item.") && name.size() > 5, "rewards",
                  "string_check: {{{{{}}}}}; expected {{{{item.KEY}}}}, a value of the record",
                  name);
      parts_.push_back({"", name.substr(5)});
      rest.remove_prefix(close + 2);
    }
    parts_.push_back({std::string(rest), {}});
  }

  // Returns the text for a record. Throws BadFile if it lacks a key.
  std::string operator()(const Prompt& prompt) const {
    const auto record = parse_ordered_json(prompt.record, prompt.conversation.location);
    std::string text;
    for (const Part& part : parts_)
      text +=
          part.path.empty() ? part.text : value(record, part.path, prompt.conversation.location);
    return text;
  }

 private:
  struct Part {
    std::string text, path;  // one of them
  };

  static std::string trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) return {};
    return std::string(text.substr(begin, text.find_last_not_of(' ') + 1 - begin));
  }

  static std::string value(const nlohmann::ordered_json& record, const std::string& path,
                           const std::string& location) {
    const nlohmann::ordered_json* at = &record;
    for (std::string_view rest = path; at != nullptr && !rest.empty();) {
      const std::string key(rest.substr(0, rest.find('.')));
      rest.remove_prefix(std::min(key.size() + 1, rest.size()));
      const auto found = at->is_object() ? at->find(key) : at->end();
      at = at->is_object() && found != at->end() ? &*found : nullptr;
    }
    const bool plain = at != nullptr && (at->is_string() || at->is_number() || at->is_boolean());
    if (!plain)
      fail(ErrorKind::BadFile,
           "{}: {} is {}; expected a text or a number, for the reward "
           "string_check",
           location, path, at == nullptr ? "missing" : "another value");
    return at->is_string() ? at->get<std::string>() : at->dump();
  }

  std::vector<Part> parts_;
};

class StringCheck : public Check {
 public:
  explicit StringCheck(const std::string& argument)
      : operation_(operation_of(argument)), reference_(argument.substr(argument.find(':') + 1)) {}

  void require(const Prompt& prompt) const override { reference_(prompt); }

 private:
  enum class Operation { equal, unequal, like, like_in_any_case };

  static Operation operation_of(const std::string& argument) {
    const size_t colon = argument.find(':');
    const std::string name = argument.substr(0, colon);
    const char* const names[] = {"eq", "ne", "like", "ilike"};
    const auto* const found = std::find(std::begin(names), std::end(names), name);
    check_field(colon != argument.npos && found != std::end(names), "rewards",
                "string_check:{}; expected string_check:eq:TEXT, or ne, like or ilike", argument);
    return static_cast<Operation>(found - std::begin(names));
  }

  bool holds(const GeneratedAnswer& answer) override {
    const std::string expected = reference_(*answer.prompt);
    switch (operation_) {
      case Operation::equal: return answer.text == expected;
      case Operation::unequal: return answer.text != expected;
      case Operation::like: return answer.text.find(expected) != std::string::npos;
      case Operation::like_in_any_case: break;
    }
    return lowercase_text(answer.text).find(lowercase_text(expected)) != std::string::npos;
  }

  Operation operation_;
  RecordTemplate reference_;
};

}  // namespace

std::unique_ptr<Reward> make_string_check(const std::string& argument) {
  return std::make_unique<StringCheck>(argument);
}

}  // namespace fovea::train
