// Calls that a model with random probabilities generates under message_constraint(): in each
// format, of random functions. FOVEA_TOOL_CALLS=N generates calls of N sets of functions in each
// format of $FOVEA_TOOL_FORMATS, separated by ", ", and writes them to $FOVEA_TOOL_CALLS_FILE for
// tools/testing/tool_calls.py.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "fovea/text/calls.h"
#include "fovea/train/train_tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "unit/calls/message.h"

namespace fovea::text {
namespace {

using Json = nlohmann::ordered_json;

// Random functions whose calls are bounded.
class RandomFunctions {
 public:
  explicit RandomFunctions(uint64_t seed) : random_(seed) {}

  std::vector<CallableFunction> some() {
    std::vector<CallableFunction> functions;
    const size_t count = 1 + below(4);
    for (size_t i = 0; i < count; ++i)
      functions.push_back(
          {"tool_" + std::string(1, static_cast<char>('a' + i)) + (i % 2 == 0 ? "" : "-b.c"),
           object(0).dump(), true});
    return functions;
  }

 private:
  size_t below(size_t limit) { return random_() % limit; }

  Json object(int depth) {
    Json properties = Json::object(), required = Json::array();
    const size_t count = below(4);
    for (size_t i = 0; i < count; ++i) {
      const std::string name = std::string("p") + std::to_string(i);
      properties[name] = value(depth + 1);
      if (below(2) == 0) required.push_back(name);
    }
    return {{"type", "object"},
            {"properties", properties},
            {"required", required},
            {"additionalProperties", false}};
  }

  Json value(int depth) {
    switch (below(depth > 2 ? 8 : 11)) {
      case 0: return {{"type", "boolean"}};
      case 1: return {{"type", "integer"}, {"minimum", -5}, {"maximum", 1000}};
      case 2: return {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
      case 3: return {{"enum", {"red", "green blue", "ü"}}};
      case 4: return {{"type", "string"}, {"maxLength", 12}};
      case 5: return {{"type", "string"}, {"pattern", "^[a-c]{2,5}$"}};
      case 6: return {{"type", "string"}, {"minLength", 2}, {"maxLength", 6}};
      case 7: return {{"type", "null"}};
      case 8:
        return {{"type", "array"}, {"items", value(depth + 1)}, {"minItems", 1}, {"maxItems", 3}};
      case 9: return {{"anyOf", {value(depth + 1), {{"type", "null"}}}}};
      default: return object(depth);
    }
  }

  std::mt19937_64 random_;
};

class CallConstraintTest : public testing::Test {
 protected:
  CallConstraintTest() : tokenizer_(train()) {
    vocabulary_ = std::make_shared<const JsonVocabulary>(
        tokenizer_, std::vector<int32_t>{tokenizer_.eos_id().value()});
  }

  Tokenizer train() const {
    const std::string path = folder_.path() + "/text.txt";
    std::ofstream(path) << "{\"name\": \"tool_a\", \"arguments\": {\"p0\": [true, null]}}\n"
                           "<tool_call>\n</tool_call> <function=tool_a> <parameter=p1>\n";
    TokenizerTraining options;
    options.vocabulary = 320;
    return train::train_tokenizer({path}, options, {})->tokenizer;
  }

  struct Generated {
    std::string text;
    bool ended = false;
  };
  // Generates with a model that gives all allowed tokens the same probability, after `begin`.
  Generated generate(const MessageConstraint& made, int64_t most, uint64_t seed,
                     const std::string& begin = {}) {
    std::mt19937_64 random(seed);
    std::vector<int32_t> written = tokenizer_.encode(begin);
    while (static_cast<int64_t>(written.size()) < most) {
      std::vector<float> logits(static_cast<size_t>(tokenizer_.size()), 0.0f);
      made.constrain(written, logits);
      std::vector<int32_t> allowed;
      for (int32_t id = 0; id < tokenizer_.size(); ++id)
        if (std::isfinite(logits[static_cast<size_t>(id)])) allowed.push_back(id);
      EXPECT_FALSE(allowed.empty()) << tokenizer_.decode(written);
      if (allowed.empty()) break;
      const int32_t id = allowed[random() % allowed.size()];
      if (id == tokenizer_.eos_id()) return {tokenizer_.decode(written), true};
      written.push_back(id);
    }
    return {tokenizer_.decode(written)};
  }

  TemporaryFolder folder_;
  Tokenizer tokenizer_;
  std::shared_ptr<const JsonVocabulary> vocabulary_;
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  const char* const wanted = std::getenv("FOVEA_TOOL_FORMATS");
  const std::string all = (wanted != nullptr ? wanted : call_format_names()) + ", ";
  for (size_t at = 0; at < all.size(); at = all.find(", ", at) + 2)
    names.push_back(all.substr(at, all.find(", ", at) - at));
  return names;
}

TEST_F(CallConstraintTest, CallsOfRandomFunctionsAreValid) {
  const char* const wanted = std::getenv("FOVEA_TOOL_CALLS");
  const uint64_t sets = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 6;
  const char* const path = std::getenv("FOVEA_TOOL_CALLS_FILE");
  std::ofstream file;
  if (path != nullptr) file.open(path);
  for (const std::string& name : format_names()) {
    if (name == "qwen3_coder_unopened") continue;
    uint64_t cut = 0;
    for (uint64_t seed = 0; seed < sets; ++seed) {
      MessageRules rules;
      rules.format.calls = find_call_format(name);
      rules.functions = RandomFunctions(seed).some();
      rules.enforced = true;
      MessageLimits limits;
      limits.calls_required = true;
      limits.most_tokens = 600;
      limits.one_call = seed % 2 == 0;
      const MessageConstraint made = message_constraint(vocabulary_, tokenizer_, rules, limits);
      EXPECT_TRUE(made.warnings.empty()) << made.warnings[0];
      const Generated generated = generate(made, limits.most_tokens, seed);
      const Message message = whole_message(rules, generated.text);
      ASSERT_EQ(message, divided_message(rules, generated.text, 1)) << name << generated.text;
      if (!generated.ended) {
        ++cut;
        continue;
      }
      ASSERT_GE(message.calls.size(), 1u) << name << "\n" << generated.text;
      ASSERT_EQ(message.content, "") << name << "\n" << generated.text;
      for (const ReadCall& call : message.calls) {
        const Json arguments = Json::parse(call.arguments, nullptr, false);
        ASSERT_TRUE(arguments.is_object()) << name << "\n" << generated.text;
        const auto function =
            std::ranges::find(rules.functions, call.name, &CallableFunction::name);
        ASSERT_NE(function, rules.functions.end());
        const Json schema = Json::parse(function->parameters);
        for (const Json& key : schema["required"])
          EXPECT_TRUE(arguments.contains(key.get<std::string>())) << name << generated.text;
        for (const auto& [key, value] : arguments.items())
          EXPECT_TRUE(schema["properties"].contains(key)) << name << generated.text;
        if (path != nullptr)
          file << Json{{"format", name}, {"schema", schema}, {"arguments", arguments}}.dump()
               << "\n";
      }
    }
    EXPECT_LE(cut * 20, sets) << name << ": too many texts are cut off";
    if (path != nullptr)
      file << Json{{"format", name}, {"sets", sets}, {"cut", cut}}.dump() << "\n";
  }
}

TEST_F(CallConstraintTest, AppliesFromTheMarkOfACallOn) {
  MessageRules rules;
  rules.format.calls = find_call_format("hermes");
  rules.functions = {{"tool_a", R"({"type": "object", "properties": {"p0": {"enum": [7]}},
                                    "required": ["p0"], "additionalProperties": false})"}};
  rules.enforced = true;
  MessageLimits limits;
  limits.most_tokens = 200;
  limits.one_call = true;
  const MessageConstraint made = message_constraint(vocabulary_, tokenizer_, rules, limits);
  const Generated free = generate(made, 20, 1, "Some text");
  EXPECT_EQ(free.text.substr(0, 9), "Some text");
  const Generated call = generate(made, 200, 2, "Some text <tool_call>");
  EXPECT_TRUE(call.ended);
  const Message message = whole_message(rules, call.text);
  EXPECT_EQ(message.content, "Some text");
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(Json::parse(message.calls[0].arguments), (Json{{"p0", 7}}));
}

TEST_F(CallConstraintTest, EndsReasoningAtItsBudget) {
  MessageRules rules;
  rules.format.reasoning_begin = "<think>";
  rules.format.reasoning_end = "</think>";
  rules.in_reasoning = true;
  MessageLimits limits;
  limits.reasoning_tokens = 9;
  limits.most_tokens = 100;
  limits.content = [this](int64_t most) {
    return json_constraint(vocabulary_, R"({"const": {"a": 1}})", most);
  };
  const MessageConstraint made = message_constraint(vocabulary_, tokenizer_, rules, limits);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Generated generated = generate(made, 100, seed);
    EXPECT_TRUE(generated.ended) << generated.text;
    const size_t end = generated.text.find("</think>");
    ASSERT_NE(end, std::string::npos) << generated.text;
    EXPECT_EQ(Json::parse(whole_message(rules, generated.text).content), (Json{{"a", 1}}));
  }
}

// Speculative tokens that are rejected later, and other generations of the request, change nothing.
TEST_F(CallConstraintTest, ForgetsRejectedTokens) {
  MessageRules rules;
  rules.format = {find_call_format("hermes"), "<think>", "</think>"};
  rules.functions = {{"tool_a", ""}};
  rules.enforced = true;
  const MessageLimits limits = {.reasoning_tokens = 5, .most_tokens = 300};
  const auto logits_after = [&](const MessageConstraint& made,
                                const std::vector<int32_t>& written) {
    std::vector<float> logits(static_cast<size_t>(tokenizer_.size()), 0.0f);
    made.constrain(written, logits);
    return logits;
  };
  const MessageConstraint used = message_constraint(vocabulary_, tokenizer_, rules, limits);
  std::mt19937 random(3);
  const std::vector<int32_t> texts[] = {
      tokenizer_.encode("<think>abc</think>Some text <tool_call>\n{\"name\": \"tool_a\", "),
      tokenizer_.encode("Other text </tool_call> <tool_call>\n{\"name\": \"tool_a\"")};
  for (int i = 0; i < 400; ++i) {
    const std::vector<int32_t>& text = texts[random() % 2];
    std::vector<int32_t> written(
        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(random() % text.size()));
    for (size_t n = random() % 4; n > 0; --n)
      written.push_back(static_cast<int32_t>(random() % 300));
    const MessageConstraint fresh = message_constraint(vocabulary_, tokenizer_, rules, limits);
    ASSERT_EQ(logits_after(used, written), logits_after(fresh, written))
        << tokenizer_.decode(written);
  }
}

TEST_F(CallConstraintTest, NamesSchemasThatCannotBeEnforced) {
  MessageRules rules;
  rules.format.calls = find_call_format("hermes");
  rules.functions = {{"f", R"({"type": "object", "properties": {"a": {"type": "unknown"}}})"}};
  rules.enforced = true;
  const MessageLimits limits = {.calls_required = true, .most_tokens = 200};
  const MessageConstraint made = message_constraint(vocabulary_, tokenizer_, rules, limits);
  ASSERT_EQ(made.warnings.size(), 1u);
  EXPECT_NE(made.warnings[0].find("\"f\""), std::string::npos);
  rules.functions[0].strict = true;
  expect_error(ErrorKind::InvalidArgument, {"\"f\""},
               [&] { message_constraint(vocabulary_, tokenizer_, rules, limits); });
}

}  // namespace
}  // namespace fovea::text
