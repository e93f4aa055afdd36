#include "fovea/text/json_grammar.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "fovea/train/train_tokenizer.h"
#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "unit/grammar/reader.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

TEST(JsonGrammar, AcceptsExactlyJson) {
  text::Reader any("true");
  for (const char* text :
       {"{}", "[]", "null", "true", "false", "0", "-1.5e+10", "12", "\"\"", "\"a\\n\\u00e9é漢😀\"",
        R"({"a": [1, {"b": null}], "c":"d"})", "[\n  1,\n  2\n]", "[[[[[]]]]]", " 1"}) {
    EXPECT_TRUE(any.reads(text)) << text;
    EXPECT_TRUE(Json::accept(text)) << text;
  }
  for (const char* text : {"", "{", "01", "+1", "1.", ".5", "1e", "nul", "\"\n\"", "\"\\x\"",
                           "[1,]", "{\"a\"}", "{a:1}", "1 2", "\"\xff\"", "\"\xed\xa0\x80\"",
                           "\"\\ud800\"", "\"\xc0\x80\"", "{\"a\":1,}"}) {
    EXPECT_FALSE(any.reads(text)) << text;
  }
  text::Reader object("");
  EXPECT_TRUE(object.reads("{\"a\": 1}"));
  EXPECT_FALSE(object.reads("[1]"));
}

TEST(JsonGrammar, FollowsASchema) {
  text::Reader person(
      R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 2,
    "maxLength": 3}, "age": {"type": "integer"}, "kind": {"enum": ["a", 1, null]}, "tags":
    {"type": "array", "items": {"const": "x"}, "minItems": 1, "maxItems": 2}},
    "required": ["name", "tags"], "additionalProperties": false})");
  EXPECT_TRUE(person.reads(R"({"name": "né", "age": 3, "kind": "a", "tags": ["x"]})"));
  EXPECT_TRUE(person.reads(R"({"name":"abc","tags":["x","x"]})"));
  EXPECT_TRUE(person.reads(R"({"name":"abc","kind":null,"tags":["x"]})"));
  for (const char* text :
       {R"({"name": "a", "tags": ["x"]})", R"({"name": "abcd", "tags": ["x"]})",
        R"({"name": "ab"})", R"({"tags": ["x"]})", R"({"name": "ab", "tags": []})",
        R"({"name": "ab", "tags": ["x", "x", "x"]})", R"({"name": "ab", "tags": ["y"]})",
        R"({"name": 1, "tags": ["x"]})", R"({"name": "ab", "age": 1.5, "tags": ["x"]})",
        R"({"name": "ab", "kind": "b", "tags": ["x"]})",
        R"({"name": "ab", "tags": ["x"], "more": 1})"}) {
    EXPECT_FALSE(person.reads(text)) << text;
  }
}

TEST(JsonGrammar, AllowsOptionalPropertiesToBeOmitted) {
  text::Reader reader(R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c":
    {"type": "null"}}})");
  for (const char* text : {"{}", R"({"a": null})", R"({"b": null})", R"({"c":null})",
                           R"({"a": null, "c": null})", R"({"a": null, "b": null, "c": null})"}) {
    EXPECT_TRUE(reader.reads(text)) << text;
  }
  EXPECT_FALSE(reader.reads(R"({"c": null, "a": null})")) << "properties have an order";
  EXPECT_FALSE(reader.reads(R"({, "a": null})"));
  EXPECT_FALSE(reader.reads(R"({"a": null,})"));
}

TEST(JsonGrammar, SupportsAlternativesAndReferences) {
  text::Reader tree(R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties":
    {"value": {"type": ["integer", "null"]}, "children": {"type": "array", "items":
    {"$ref": "#/$defs/node"}}}, "required": ["value", "children"]}}})");
  EXPECT_TRUE(tree.reads(R"({"value": 1, "children": [{"value": null, "children": []}]})"));
  EXPECT_FALSE(tree.reads(R"({"value": 1, "children": [2]})"));
  text::Reader either(R"({"anyOf": [{"type": "string"}, {"$ref": "#"}, {"type": "boolean"}]})");
  EXPECT_TRUE(either.reads("true"));
  EXPECT_FALSE(either.reads("1"));
  text::Reader map(R"({"type": "object", "additionalProperties": {"type": "number"}})");
  EXPECT_TRUE(map.reads(R"({"a": 1, "b": 2.5})"));
  EXPECT_FALSE(map.reads(R"({"a": "b"})"));
  text::Reader pair(R"({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]})");
  EXPECT_TRUE(pair.reads("[null, true]"));
  EXPECT_FALSE(pair.reads("[null]"));
}

// Tests that a schema reads these texts, separated by ';', and not the others.
void expect_reads(const std::string& schema, const std::string& read, const std::string& others) {
  text::Reader reader(schema);
  for (const auto& [texts, expected] : {std::pair(read, true), std::pair(others, false)}) {
    std::istringstream list(texts);
    for (std::string text; std::getline(list, text, ';');)
      EXPECT_EQ(reader.reads(text), expected) << schema << " " << text;
  }
}

TEST(JsonGrammar, CombinesSchemas) {
  expect_reads(R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                             {"properties": {"a": {"minimum": 3}, "b": {"type": "null"}}}]})",
               R"({"a":3};{"a":4,"b":null})", R"({"a":2};{"b":null};{"a":3.5})");
  expect_reads(R"({"$ref": "#/$defs/n", "minimum": 2, "$defs": {"n": {"type": "integer"}}})",
               "2;30", "1;2.5");
  expect_reads(R"({"properties": {"a": {"const": 1}, "b": {"const": 2}},
                   "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
               R"({"a":1};{"b":2};{"a":1,"b":2})", "{}");
  // A schema that contains itself within a property.
  expect_reads(
      R"({"allOf": [{"$ref": "#/$defs/a"}, {"required": ["x"]}], "$defs": {"a": {"properties":
                   {"x": {"anyOf": [{"type": "null"}, {"$ref": "#", "title": "t"}]}}}}})",
      R"({"x":null};{"x":{"x":null}})", R"({};{"x":{}})");
  expect_reads(R"({"allOf": [{"additionalProperties": false, "properties": {"a": {}}},
                             {"properties": {"b": {}}}]})",
               R"({"a":1})", R"({"b":1};{"a":1,"b":1})");
  expect_reads(R"({"allOf": [{"properties": {"a": {"type": "null"}}}],
                   "properties": {"b": {"type": "null"}}, "unevaluatedProperties": false})",
               R"({"b":null,"a":null};{})", R"({"c":1})");
  expect_reads(R"({"enum": ["a", "bcd", 3, 8], "allOf": [{"minLength": 2, "minimum": 5}]})",
               "\"bcd\";8", "\"a\";3");
  expect_reads(R"({"type": ["string", "null"], "not": {"type": "string"}})", "null", "\"\"");
}

TEST(JsonGrammar, ReadsWhatOneSchemaOfOneOfAllows) {
  expect_reads(R"({"oneOf": [{"type": "string"}, {"type": "null"}]})", "null;\"a\"", "1");
  expect_reads(R"({"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}], "discriminator": {},
    "$defs": {"cat": {"properties": {"kind": {"const": "cat"}, "friend": {"$ref": "#"}},
                      "required": ["kind"]},
              "dog": {"properties": {"kind": {"enum": ["dog", "wolf"]}}, "required": ["kind"]}}})",
               R"({"kind":"cat","friend":{"kind":"dog"}};{"kind":"wolf"})", R"({"kind":"fox"})");
  expect_reads(
      R"({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "number", "minimum": 4}]})",
      "3;4.5", "3.5");
  expect_reads(R"({"oneOf": [{"properties": {"a": {}}, "required": ["a"]},
                             {"properties": {"b": {}}, "required": ["b"]}]})",
               R"({"a":1};{"b":1})", R"({"a":1,"b":1};{})");
  for (
      const char* schema :
      {R"({"oneOf": [{"properties": {"a": {}, "b": {}}, "required": ["a"]}, {"required": ["b"]}]})",
       R"({"oneOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}}}]})",
       R"({"oneOf": [{"const": 1.0}, {"type": "integer"}]})", R"({"oneOf": [true, true]})"})
    expect_error(ErrorKind::Unsupported, {"oneOf"}, [&] { text::Reader reader(schema); });
}

TEST(JsonGrammar, LimitsPatternsByLengths) {
  expect_reads(R"({"pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3})", R"("ab";"abc")",
               R"("a";"abcd";"a1")");
  expect_reads(R"({"pattern": "^(ab|c)+(-[0-9]*)?$", "minLength": 3, "maxLength": 5})",
               R"("abc";"ccc";"ab-12";"cc-";"ababc")", R"("ab";"ab-123";"c-";"ababab")");
  expect_reads(R"({"pattern": "b", "minLength": 3})", R"("abc";"b\n\"";"xxxb")", R"("ab";"aaa")");
  expect_reads(R"({"pattern": "^é{2,}$", "maxLength": 2})", R"("éé")", R"("é";"ééé")");
  expect_reads(R"({"pattern": "^(a?b?)*$", "minLength": 2, "maxLength": 2})", R"("ab";"bb")",
               R"("a";"aba")");
}

TEST(JsonGrammar, ReadsMultiples) {
  expect_reads(R"({"type": "integer", "multipleOf": 7})", "0;-14;7000;49", "1;-13;7.0;70001");
  expect_reads(R"({"multipleOf": 0.01})", "0;4.5;19.99;-3;0.07", "0.075;1e2;4.500");
  expect_reads(R"({"multipleOf": 0.01, "exclusiveMinimum": 0})", "0.01;4.5;70000", "0;-3;0.075");
  expect_reads(R"({"multipleOf": 2.5, "minimum": 0})", "0;2.5;10;12.5", "-2.5;3;12.25");
  expect_reads(R"({"type": "integer", "multipleOf": 200, "exclusiveMinimum": 0})", "200;1400",
               "0;-200;100");
  expect_reads(R"({"multipleOf": 0.5, "exclusiveMinimum": -1, "maximum": 1.2})", "-0.5;0;1",
               "-1;1.5;0.2");
  expect_reads(R"({"type": "integer", "multipleOf": 1.5})", "3;0;-6", "1;2;4.5");
}

TEST(JsonGrammar, CountsAndNamesProperties) {
  expect_reads(
      R"({"additionalProperties": {"type": "null"}, "minProperties": 1, "maxProperties": 2})",
      R"({"a":null};{"a":null,"b":null})", R"({};{"a":null,"b":null,"c":null})");
  expect_reads(
      R"({"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 1, "maxProperties": 2})",
      R"({"a":1};{"b":1,"c":1};{"c":1})", R"({};{"a":1,"b":1,"c":1})");
  expect_reads(R"({"propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "null"},
                   "required": ["y"]})",
               R"({"y":null};{"y":null,"x":null})", R"({};{"x":null};{"y":1};{"y":null,"z":null})");
  expect_reads(R"({"propertyNames": {"pattern": "^[a-c]$"}, "type": "object"})", R"({"a":1};{})",
               R"({"d":1})");
  expect_reads(
      R"({"patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": false})",
      R"({"n1":1,"n2":2};{})", R"({"a":1};{"n":"x"})");
  expect_reads(R"({"properties": {"a": false, "b": {}}})", R"({"b":1};{})", R"({"a":1})");
}

TEST(JsonGrammar, ReadsItemsAtTheirIndices) {
  expect_reads(
      R"({"prefixItems": [{"type": "null"}], "items": {"type": "integer"}, "minItems": 0})",
      "[];[null];[null, 1, 2]", "[1];[null, null]");
  expect_reads(R"({"items": [{"type": "null"}, {"type": "boolean"}], "additionalItems": false})",
               "[null, true]", "[null];[null, true, 1]");
  expect_reads(R"({"items": {"enum": ["a", "b", "a"]}, "uniqueItems": true, "minItems": 1})",
               R"(["a"];["b", "a"])", R"([];["a", "a"])");
  expect_reads(R"({"uniqueItems": true, "maxItems": 1})", "[];[1]", "[1, 2]");
}

TEST(JsonGrammar, ComputesTheShortestValue) {
  EXPECT_EQ(text::Reader("true").shortest(), 1);
  EXPECT_EQ(text::Reader("").shortest(), 2);
  EXPECT_EQ(text::Reader(R"({"type": "string", "minLength": 5})").shortest(), 7);
  EXPECT_EQ(text::Reader(R"({"properties": {"a": {}}, "required": ["a", "b"]})").shortest(), 13);
}

TEST(JsonGrammar, RefusesInvalidAndUnsupportedSchemas) {
  const auto refused = [](const std::string& schema, ErrorKind kind, const std::string& text) {
    expect_error(kind, {text}, [&] { text::Reader reader(schema); });
  };
  refused("{", ErrorKind::InvalidArgument, "schema: unexpected end of input (byte 1");
  refused(R"({"enum": [1], "enum": [2]})", ErrorKind::InvalidArgument, "duplicate key");
  refused("[]", ErrorKind::InvalidArgument, "not a schema");
  refused("false", ErrorKind::InvalidArgument, "not a schema");
  refused(R"({"type": "text"})", ErrorKind::InvalidArgument, "type is unknown");
  refused(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", ErrorKind::Unsupported,
          "a value may satisfy its schemas 1 and 0");
  refused(R"({"uniqueItems": true})", ErrorKind::Unsupported, "uniqueItems");
  refused(R"({"properties": {"a": {"properties": {"b": {}}, "unevaluatedProperties": false}},
              "anyOf": [{"properties": {"a": {"properties": {"c": {}}}}}]})",
          ErrorKind::Unsupported, "unevaluatedProperties");
  refused(R"({"multipleOf": 0})", ErrorKind::InvalidArgument, "multipleOf is 0");
  refused(R"({"multipleOf": 3, "minimum": 1})", ErrorKind::Unsupported, "two bounds");
  refused(R"({"not": {"pattern": "a"}})", ErrorKind::Unsupported, "not, and if with else");
  refused(R"({"$ref": "#/$defs/a", "pattern": "b", "$defs": {"a": {"pattern": "a"}}})",
          ErrorKind::Unsupported, "pattern has two values");
  refused(R"~({"pattern": "(?=a)"})~", ErrorKind::InvalidArgument, "schema: pattern: a group");
  refused(R"~({"pattern": "(^a|b)"})~", ErrorKind::InvalidArgument, "an anchor inside a group");
  refused(R"({"pattern": 3})", ErrorKind::InvalidArgument, "pattern is not a string");
  refused(R"({"properties": {"a": {"$dynamicRef": "#"}}})", ErrorKind::Unsupported, "schema.a");
  refused(R"({"minimum": "1"})", ErrorKind::InvalidArgument, "minimum is invalid");
  refused(R"({"minimum": 2, "maximum": 1})", ErrorKind::InvalidArgument, "above the upper");
  refused(R"({"minimum": 1e-20})", ErrorKind::InvalidArgument, "schema: 1e-20 has too many");
  refused(R"({"anyOf": [{}, {"items": {"type": 3}}]})", ErrorKind::InvalidArgument,
          "schema.anyOf.1.items");
  refused(R"({"required": ["a"], "additionalProperties": false})", ErrorKind::InvalidArgument,
          "forbids");
  refused(R"({"$ref": "other.json"})", ErrorKind::InvalidArgument, "$ref");
  refused(R"({"$ref": "#/$defs/none"})", ErrorKind::InvalidArgument, "has no target");
  refused(R"({"enum": []})", ErrorKind::InvalidArgument, "enum");
  refused(R"({"type": "string", "minLength": -1})", ErrorKind::InvalidArgument, "minLength");
  refused(R"({"type": "string", "maxLength": 1000000000})", ErrorKind::InvalidArgument,
          "maxLength");
  refused("{\"const\": \"" + std::string(200'000, 'a') + "\"}", ErrorKind::InvalidArgument,
          "too large");
  std::string deep;
  for (int i = 0; i < 60'000; ++i) deep += R"({"items":)";
  refused(deep, ErrorKind::InvalidArgument, "nested");
}

TEST(JsonGrammar, NamesTheLocationInAShortError) {
  std::string schema = R"({"$dynamicRef": "#"})";
  for (int i = 0; i < 30; ++i) {
    schema =
        fmt::format(R"({{"properties": {{"{}": {}}}}})", std::string(100, 'n') + "\\n", schema);
  }
  try {
    text::Reader reader(schema);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("schema.nnnn")) << message;
    EXPECT_NE(message.find("$dynamicRef is not supported"), std::string::npos) << message;
    EXPECT_LT(message.size(), 500u);
  }
}

TEST(JsonGrammar, KeepsTheOrderOfKeys) {
  text::Reader reader(R"({"const": {"b": [1, {"d": 0, "c": ""}], "a": true}})");
  EXPECT_TRUE(reader.reads(R"({"b":[1,{"d":0,"c":""}],"a":true})"));
  EXPECT_FALSE(reader.reads(R"({"a":true,"b":[1,{"d":0,"c":""}]})"));
  text::Reader properties(R"({"properties": {"b": {"const": 1}, "a": {"const": 2}}})");
  EXPECT_TRUE(properties.reads(R"({"b": 1, "a": 2})"));
}

TEST(JsonGrammar, AppliesAdditionalPropertiesToRequiredNames) {
  text::Reader reader(R"({"required": ["a"], "additionalProperties": {"type": "number"}})");
  EXPECT_TRUE(reader.reads(R"({"a": 1})"));
  EXPECT_FALSE(reader.reads(R"({"a": "1"})"));
}

TEST(JsonGrammar, DetectsUnsatisfiableSchemas) {
  EXPECT_GE(text::Reader(R"({"$ref": "#"})").shortest(), text::Grammar::kNever);
  EXPECT_GE(text::Reader(R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})").shortest(),
            text::Grammar::kNever);
}

// Constraints over a vocabulary of all bytes and some longer tokens.
class JsonConstraintTest : public testing::Test {
 protected:
  JsonConstraintTest() : tokenizer_(train()) {
    const std::vector<int32_t> ends = {tokenizer_.eos_id().value()};
    vocabulary_ = std::make_shared<const text::JsonVocabulary>(tokenizer_, ends);
  }

  text::Tokenizer train() {
    const std::string path = folder_.path() + "/text.txt";
    std::ofstream(path) << R"({"name": "fox", "age": 12, "tags": ["a", "b"]}, {"name": "dog"})";
    text::TokenizerTraining options;
    options.vocabulary = 300;
    return train::train_tokenizer({path}, options, {})->tokenizer;
  }

  // Generates with a model that gives all tokens the same probability.
  std::string write(const std::string& schema, int64_t most, uint64_t seed) {
    const text::Constraint constraint = text::json_constraint(vocabulary_, schema, most);
    std::mt19937_64 random(seed);
    std::vector<int32_t> written;
    while (most < 0 || static_cast<int64_t>(written.size()) < most) {
      std::vector<float> logits(static_cast<size_t>(tokenizer_.size()), 0.0f);
      constraint(written, logits);
      std::vector<int32_t> allowed;
      for (int32_t id = 0; id < tokenizer_.size(); ++id) {
        if (std::isfinite(logits[static_cast<size_t>(id)])) allowed.push_back(id);
      }
      if (allowed.empty()) return "no token is allowed after " + tokenizer_.decode(written);
      const int32_t id = allowed[random() % allowed.size()];
      if (id == tokenizer_.eos_id()) break;
      written.push_back(id);
    }
    return tokenizer_.decode(written);
  }

  TemporaryFolder folder_;
  text::Tokenizer tokenizer_;
  std::shared_ptr<const text::JsonVocabulary> vocabulary_;
};

TEST_F(JsonConstraintTest, ProducesValidJsonWithinTheLimit) {
  const std::string schema = R"({"type": "object", "properties": {"name": {"type": "string"},
    "age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["name", "age", "tags"], "additionalProperties": false})";
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::string text = write(schema, 60, seed);
    const Json json = Json::parse(text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << seed << ": " << text;
    EXPECT_TRUE(json["name"].is_string() && json["age"].is_number_integer() &&
                json["tags"].is_array())
        << text;
    const std::string any = write("", 25, seed);
    EXPECT_TRUE(Json::accept(any)) << seed << ": " << any;
  }
}

// The states and masks of a long result are discarded when they take too much memory. Generation
// then continues correctly.
TEST_F(JsonConstraintTest, ContinuesAfterItsMemoryIsCleared) {
  const int64_t length = 30'000;
  const text::Constraint constraint = text::json_constraint(
      vocabulary_,
      fmt::format(R"({{"items": {{"type": "string", "minLength": {0}, "maxLength": {0}}}}})",
                  length));
  const int32_t letter = tokenizer_.encode("x")[0];
  std::vector<float> logits(static_cast<size_t>(tokenizer_.size()));
  std::vector<int32_t> written = tokenizer_.encode("[\"");
  const auto allows = [&](const std::string& text) {
    std::fill(logits.begin(), logits.end(), 0.0f);
    constraint(written, logits);
    return std::isfinite(logits[static_cast<size_t>(tokenizer_.encode(text)[0])]);
  };
  for (int64_t i = 0; i < length; i += 500) {
    ASSERT_TRUE(allows("x") && !allows("\"")) << i;
    written.insert(written.end(), 500, letter);
  }
  EXPECT_TRUE(allows("\"") && !allows("x"));
}

TEST_F(JsonConstraintTest, KeepsConcurrentResultsSeparate) {
  const text::Constraint shared = text::json_constraint(vocabulary_, R"({"enum": ["ab", "cd"]})");
  const auto allowed = [&](const std::string& before) {
    const std::vector<int32_t> written = tokenizer_.encode(before);
    std::vector<float> logits(static_cast<size_t>(tokenizer_.size()), 0.0f);
    shared(written, logits);
    std::string bytes;
    for (int32_t id = 0; id < tokenizer_.size(); ++id) {
      if (std::isfinite(logits[static_cast<size_t>(id)])) bytes += tokenizer_.bytes_of(id);
    }
    return bytes;
  };
  const std::string end = tokenizer_.bytes_of(*tokenizer_.eos_id());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(allowed("\"a"), "b");
    EXPECT_EQ(allowed("\"c"), "d");
    EXPECT_EQ(allowed("\"ab"), "\"");
    EXPECT_EQ(allowed("\"ab\""), end);
    EXPECT_EQ(allowed("\"cd\""), end);
  }
}

TEST_F(JsonConstraintTest, RefusesImpossibleValues) {
  expect_error(ErrorKind::InvalidArgument, {"a text that satisfies"},
               [&] { text::json_constraint(vocabulary_, R"({"$ref": "#"})"); });
  expect_error(ErrorKind::InvalidArgument, {"end-of-text"},
               [&] { text::JsonVocabulary(tokenizer_, {}); });
}

}  // namespace
}  // namespace fovea
