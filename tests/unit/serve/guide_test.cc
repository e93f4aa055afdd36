#include "unit/serve/api_fixture.h"

namespace fovea::serve {
namespace {

class GuideTest : public ApiTest {};

TEST_F(GuideTest, ConstrainsJson) {
  const Json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "null"}}}}}};
  const auto ask_for = [&](const Json& format) {
    return post(kChatPath, chat({{"response_format", format}}));
  };
  EXPECT_EQ(ask_for({{"type", "json_object"}})->response.status, 200);
  EXPECT_TRUE(options_.constrain);
  EXPECT_EQ(
      ask_for({{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}})->response.status,
      200);
  EXPECT_EQ(ask_for({{"type", "text"}})->response.status, 200);
  EXPECT_FALSE(options_.constrain);
  refused(ask_for({{"type", "xml"}}), 400, "response_format");
  refused(ask_for({{"type", "json_schema"}}), 400, "response_format.json_schema.schema");
  refused(ask_for({{"type", "json_schema"}, {"json_schema", {{"schema", {{"contains", 3}}}}}}), 400,
          "response_format", "contains");
}

TEST_F(GuideTest, ConstrainsToGrammars) {
  const auto ask_for = [&](const char* field, const Json& value) {
    return post(kCompletionPath, {{"prompt", "a"}, {field, value}});
  };
  const Json schema = {{"type", "null"}};
  for (const auto& [field, value] : {std::pair<const char*, Json>("grammar", "root ::= \"a\"+"),
                                     {"guided_grammar", "root ::= \"a\""},
                                     {"guided_regex", "[ab]{2}"},
                                     {"guided_choice", {"yes", "no"}},
                                     {"guided_json", schema},
                                     {"guided_json", schema.dump()},
                                     {"json_schema", schema}}) {
    options_.constrain = nullptr;
    EXPECT_EQ(ask_for(field, value)->response.status, 200) << field;
    EXPECT_TRUE(options_.constrain) << field;
  }
  refused(ask_for("grammar", "root ::= x"), 400, "grammar", "rule x is missing");
  refused(ask_for("guided_regex", "(a"), 400, "guided_regex", "line 1, character 3");
  refused(ask_for("guided_choice", {"a", ""}), 400, "guided_choice", "is empty");
  refused(ask_for("guided_choice", "a"), 400, "guided_choice");
  refused(ask_for("guided_json", "{"), 400, "guided_json");
  refused(post(kCompletionPath,
               {{"prompt", "a"}, {"grammar", "root ::= \"a\""}, {"guided_regex", "a"}}),
          400, "guided_regex", "only one of");
}

// Of vLLM, llama.cpp, Together, TGI, SGLang and Ollama. The text was free where a server of another
// kind would have restricted it.
TEST_F(GuideTest, AppliesTheGuidesOfOtherServers) {
  const Json schema = {{"type", "null"}}, grammar = "root ::= \"a\"";
  const auto ask_for = [&](const Json& fields) {
    options_.constrain = nullptr;
    return post(kChatPath, chat(fields));
  };
  for (const Json& fields :
       std::vector<Json>{{{"structured_outputs", {{"json", schema}}}},
                         {{"structured_outputs", {{"regex", "[ab]"}, {"json", nullptr}}}},
                         {{"structured_outputs", {{"choice", {"yes", "no"}}}}},
                         {{"structured_outputs", {{"grammar", grammar}}}},
                         {{"structured_outputs", {{"json_object", true}}}},
                         {{"response_format", {{"type", "json_object"}, {"schema", schema}}}},
                         {{"response_format", {{"type", "json"}, {"value", schema}}}},
                         {{"response_format", {{"type", "regex"}, {"pattern", "[ab]"}}}},
                         {{"response_format", {{"type", "grammar"}, {"grammar", grammar}}}},
                         {{"regex", "[ab]"}},
                         {{"ebnf", grammar}},
                         {{"format", schema}},
                         {{"format", "json"}},
                         {{"allowed_token_ids", {65, 66}}}}) {
    EXPECT_EQ(ask_for(fields)->response.status, 200) << fields;
    EXPECT_TRUE(options_.constrain) << fields;
  }
  std::vector<float> logits(static_cast<size_t>(tokenizer_->size()), 1);
  options_.constrain({}, logits);
  EXPECT_EQ(logits[65], 1);
  EXPECT_EQ(logits[67], -INFINITY);
  EXPECT_EQ(ask_for({{"format", ""}, {"structured_outputs", Json::object()}})->response.status,
            200);
  EXPECT_FALSE(options_.constrain);
  refused(ask_for({{"response_format", {{"type", "structural_tag"}}}}), 400, "response_format");
  refused(ask_for({{"response_format", {{"type", "text"}, {"schema", schema}}}}), 400,
          "response_format", "schema");
  refused(ask_for({{"structured_outputs", {{"structural_tag", "a"}}}}), 400, "structured_outputs");
  refused(ask_for({{"structured_outputs", {{"json", schema}, {"regex", "a"}}}}), 400,
          "structured_outputs", "only one");
  refused(ask_for({{"regex", "a"}, {"ebnf", grammar}}), 400, "regex", "only one of");
  refused(ask_for({{"format", "yaml"}}), 400, "format");
}

// They were dropped, and the answer had the status 200.
TEST_F(GuideTest, RefusesUnknownFieldsThatRestrictTheText) {
  const auto ask_for = [&](const Json& fields) { return post(kChatPath, chat(fields)); };
  refused(ask_for({{"structural_tag", {{"a", 1}}}}), 400, "structural_tag");
  refused(ask_for({{"include_stop_str_in_output", true}}), 400, "include_stop_str_in_output");
  refused(ask_for({{"tfs_z", 0.5}}), 400, "tfs_z");
  for (const Json& fields : std::vector<Json>{{{"include_stop_str_in_output", false}},
                                              {{"tfs_z", 1.0}},
                                              {{"structural_tag", nullptr}},
                                              {{"top_a", 0}},
                                              {{"user", "me"}, {"store", true}, {"models", {"a"}}},
                                              {{"top_p", 0.5}, {"topP", 0.5}}})
    EXPECT_EQ(ask_for(fields)->response.status, 200) << fields;
  refused(ask_for({{"temprature", 0}}), 400, "temprature", "temperature");
  refused(ask_for({{"maxTokens", 5}}), 400, "maxTokens", "max_tokens");
  refused(ask_for({{"stops", {"a"}}}), 400, "stops", "expected stop");
}

}  // namespace
}  // namespace fovea::serve
