#include "serve/request/graders.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "serve/request/api_error.h"

namespace fovea::serve {
namespace {

constexpr const char* kParam = "method.reinforcement.grader";
constexpr const char* kTypes =
    "string_check, multi, numeric, regex, length, json_schema or reward_model";
constexpr size_t kGraderText = 4096, kGraders = 16, kSchemaText = size_t{1} << 16;
constexpr int64_t kGraderTokens = 1'000'000;

[[noreturn]] void refuse_grader(const std::string& where, const std::string& what) {
  const std::string at = where.empty() ? "" : where + " ";
  throw ApiError{400, fmt::format("{}: {}{}", kParam, at, what), kParam, "invalid_value"};
}

std::string text_of(const Json& grader, const char* key, const std::string& where) {
  const auto found = grader.find(key);
  if (found == grader.end() || !found->is_string())
    refuse_grader(where + key, "is missing or no text");
  std::string text = *found;
  if (text.empty() || text.size() > kGraderText)
    refuse_grader(where + key,
                  fmt::format("has {} bytes; expected 1 to {}", text.size(), kGraderText));
  return text;
}

int64_t count_of(const Json& grader, const char* key, const std::string& where) {
  const auto found = grader.find(key);
  if (found == grader.end() || !found->is_number_integer() || *found < 0 || *found > kGraderTokens)
    refuse_grader(where + key, fmt::format("expected an integer from 0 to {}", kGraderTokens));
  return *found;
}

// Returns what is between "{{" and "}}" if that is all of the text; else an empty text.
std::string placeholder(std::string text) {
  std::erase(text, ' ');
  const bool whole = text.starts_with("{{") && text.ends_with("}}") && text.size() > 4;
  return whole ? text.substr(2, text.size() - 4) : "";
}

std::string string_check(const Json& grader, const std::string& where) {
  const std::string operation = text_of(grader, "operation", where),
                    reference = text_of(grader, "reference", where);
  if (placeholder(text_of(grader, "input", where)) != "sample.output_text")
    refuse_grader(where + "input", "expected {{sample.output_text}}");
  for (const char* known : {"eq", "ne", "like", "ilike"})
    if (operation == known) return fmt::format("string_check:{}:{}", operation, reference);
  refuse_grader(where + "operation", operation + " is unknown; expected eq, ne, like or ilike");
}

std::string numeric(const Json& grader, const std::string& where) {
  const std::string name = placeholder(text_of(grader, "reference", where));
  const std::string item = "item.";
  if (!name.starts_with(item) || name.size() == item.size() ||
      name.find('.', item.size()) != name.npos)
    refuse_grader(where + "reference", "expected {{item.KEY}}, a value of the record");
  return "numeric:" + name.substr(item.size());
}

tuning::JobReward reward_of(const Json& grader, const std::string& where, double weight) {
  if (!grader.is_object()) refuse_grader(where, "expected an object");
  const std::string type = text_of(grader, "type", where);
  tuning::JobReward reward = {.weight = weight};
  if (type == "string_check") {
    reward.check = string_check(grader, where);
  } else if (type == "numeric") {
    reward.check = numeric(grader, where);
  } else if (type == "regex") {
    reward.check = "regex:" + text_of(grader, "pattern", where);
  } else if (type == "length") {
    reward.check = fmt::format("length:{}-{}", count_of(grader, "least", where),
                               count_of(grader, "most", where));
  } else if (type == "json_schema") {
    if (!grader.contains("schema") || !grader["schema"].is_object() ||
        grader["schema"].dump().size() > kSchemaText)
      refuse_grader(where + "schema",
                    fmt::format("expected an object of at most {} bytes", kSchemaText));
    reward.schema = grader["schema"];
  } else if (type == "reward_model") {
    reward.model = text_of(grader, "model", where);
  } else {
    refuse_grader(where + "type", fmt::format("{} is not supported; expected {}", type, kTypes));
  }
  return reward;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// A term of a sum: NAME, NUMBER * NAME or NAME * NUMBER.
struct Term {
  double weight = 1;
  std::string name = {};
};

Term term_of(std::string_view text, const std::string& formula) {
  Term term;
  bool weighted = false;
  for (std::string_view rest = text;;) {
    const std::string_view factor = trimmed(rest.substr(0, rest.find('*')));
    const std::optional<double> number = number_of(factor);
    const bool twice = number ? weighted : !term.name.empty();
    if (factor.empty() || twice)
      refuse_grader(
          "calculate_output",
          fmt::format("\"{}\"; expected a sum of graders, such as 0.8 * a + 0.2 * b", formula));
    if (number) {
      term.weight = *number;
      weighted = true;
    } else {
      term.name = factor;
    }
    if (rest.find('*') == rest.npos) return term;
    rest.remove_prefix(rest.find('*') + 1);
  }
}

std::vector<Term> terms_of(const std::string& formula) {
  std::vector<Term> terms;
  for (std::string_view rest = formula;;) {
    const size_t plus = rest.find('+');
    terms.push_back(term_of(rest.substr(0, plus), formula));
    if (plus == rest.npos) return terms;
    rest.remove_prefix(plus + 1);
  }
}

}  // namespace

std::vector<tuning::JobReward> rewards_of(const Json& grader) {
  if (!grader.is_object()) refuse_grader("", "expected an object");
  if (text_of(grader, "type", "") != "multi") return {reward_of(grader, "", 1)};
  const auto graders = grader.find("graders");
  if (graders == grader.end() || !graders->is_object() || graders->empty() ||
      graders->size() > kGraders)
    refuse_grader("graders", fmt::format("expected an object of 1 to {} graders", kGraders));
  std::vector<tuning::JobReward> rewards;
  std::vector<std::string> used;
  for (const Term& term : terms_of(text_of(grader, "calculate_output", ""))) {
    if (!graders->contains(term.name))
      refuse_grader("calculate_output", term.name + " is not one of the graders");
    if (std::find(used.begin(), used.end(), term.name) != used.end())
      refuse_grader("calculate_output", term.name + " occurs twice; expected each grader once");
    used.push_back(term.name);
    rewards.push_back(reward_of((*graders)[term.name], "graders." + term.name + ".", term.weight));
  }
  for (const auto& [name, ignored] : graders->items())
    if (std::find(used.begin(), used.end(), name) == used.end())
      refuse_grader("calculate_output", "does not use the grader " + name);
  return rewards;
}

}  // namespace fovea::serve
