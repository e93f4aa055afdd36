#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/ordered_json.h"
#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"
#include "rewards/reward_check.h"
#include "unicode/pattern.h"

namespace fovea::train {
namespace {

constexpr size_t kSchemaBytes = size_t{1} << 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_space(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// A comparison with the value of a key of the record.
class ValueCheck : public Check {
 public:
  ValueCheck(const std::string& key, bool numeric)
      : key_(key.empty() ? "answer" : key), numeric_(numeric) {}

  void require(const Prompt& prompt) const override {
    const std::string value = value_of(prompt);
    if (numeric_ && !last_number(value))
      fail(ErrorKind::BadFile, "{}: {} is \"{}\"; expected a number, for the reward numeric",
           prompt.conversation.location, key_, value);
  }

 private:
  std::string value_of(const Prompt& prompt) const {
    const nlohmann::ordered_json record =
        parse_ordered_json(prompt.record, prompt.conversation.location);
    const auto found = record.find(key_);
    const bool plain =
        found != record.end() && (found->is_string() || found->is_number() || found->is_boolean());
    if (!plain)
      fail(ErrorKind::BadFile, "{}: {} is {}; expected a text or a number, for the reward {}",
           prompt.conversation.location, key_, found == record.end() ? "missing" : "another value",
           numeric_ ? "numeric" : "exact");
    return found->is_string() ? found->get<std::string>() : found->dump();
  }

  bool holds(const GeneratedAnswer& answer) override {
    const std::string expected = value_of(*answer.prompt);
    if (!numeric_) return without_space(answer.text) == without_space(expected);
    const std::optional<double> one = last_number(answer.text), other = last_number(expected);
    return one && other && std::abs(*one - *other) <= 1e-9 * std::max(1.0, std::abs(*other));
  }

  std::string key_;
  bool numeric_;
};

class PatternCheck : public Check {
 public:
  explicit PatternCheck(const std::string& pattern)
      : pattern_(text::Pattern::regex(pattern, "rewards: " + pattern)) {}

 private:
  bool holds(const GeneratedAnswer& answer) override try {
    std::vector<text::Stretch> stretches;
    pattern_.find(answer.text, stretches);
    return std::any_of(stretches.begin(), stretches.end(),
                       [](const text::Stretch& s) { return s.matches; });
  } catch (const Error&) {  // the text exceeds the limits of the search
    return false;
  }
  text::Pattern pattern_;
};

class SchemaCheck : public Check {
 public:
  explicit SchemaCheck(const std::string& path)
      : schema_(read_file(path, kSchemaBytes)), grammar_(grammar_of(path)) {}
  uint64_t hash() const override { return hash_bytes(schema_); }

 private:
  text::SchemaGrammar grammar_of(const std::string& path) const try {
    return text::schema_grammar(schema_, text::Grammar::Bytes().set());
  } catch (const Error& error) {
    fail_field(error.kind(), "rewards", "{}: {}", path, error.what());
  }

  bool holds(const GeneratedAnswer& answer) override try {
    text::GrammarAutomaton automaton(grammar_.grammar, grammar_.root);
    int32_t state = automaton.start();
    for (const char c : without_space(answer.text)) {
      state = automaton.step(state, static_cast<uint8_t>(c));
      if (state == text::GrammarAutomaton::kDead) return false;
    }
    return automaton.accepts(state);
  } catch (const Error&) {  // the schema matches the text in too many ways
    return false;
  }

  std::string schema_;
  text::SchemaGrammar grammar_;
};

class LengthCheck : public Check {
 public:
  explicit LengthCheck(const std::string& range) {
    const size_t dash = range.find('-');
    const bool both = dash != range.npos && read(range.substr(0, dash), least_) &&
                      read(range.substr(dash + 1), most_);
    check_field(both && least_ <= most_, "rewards",
                "length:{}; expected a range of tokens, such as length:1-50", range);
  }

 private:
  static bool read(const std::string& text, int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 0;
  }
  bool holds(const GeneratedAnswer& answer) override {
    return answer.tokens >= least_ && answer.tokens <= most_;
  }
  int64_t least_ = 0, most_ = 0;
};

}  // namespace

std::optional<double> last_number(std::string_view text) {
  std::optional<double> last;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) continue;
    const bool negative = i > 0 && text[i - 1] == '-' && (i < 2 || !is_digit(text[i - 2]));
    std::string digits = negative ? "-" : "";
    bool fraction = false;
    for (; i < text.size(); ++i) {
      const bool more = i + 1 < text.size() && is_digit(text[i + 1]);
      if (is_digit(text[i])) {
        digits += text[i];
      } else if (text[i] == '.' && more && !fraction) {
        digits += '.';
        fraction = true;
      } else if (text[i] != ',' || !more || fraction) {
        break;
      }
    }
    double number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    last = number;
  }
  return last;
}

std::unique_ptr<Reward> make_check(const std::string& kind, const std::string& argument) {
  if (kind == "exact" || kind == "numeric")
    return std::make_unique<ValueCheck>(argument, kind == "numeric");
  if (kind == "regex") return std::make_unique<PatternCheck>(argument);
  if (kind == "schema") return std::make_unique<SchemaCheck>(argument);
  if (kind == "string_check") return make_string_check(argument);
  if (kind == "length") return std::make_unique<LengthCheck>(argument);
  return nullptr;
}

}  // namespace fovea::train
