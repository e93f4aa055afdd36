// Keywords of the schemas that programs such as pydantic write.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.h"
#include "unit/grammar/reader.h"

namespace fovea::text {
namespace {

struct Case {
  const char* schema;
  std::vector<const char*> valid, invalid;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    Reader reader(each.schema);
    for (const char* text : each.valid)
      EXPECT_TRUE(reader.reads(text)) << each.schema << " " << text;
    for (const char* text : each.invalid)
      EXPECT_FALSE(reader.reads(text)) << each.schema << " " << text;
  }
}

void expect_refused(const char* schema, const char* why) {
  expect_error(ErrorKind::Unsupported, {why}, [&] { Reader reader(schema); });
}

TEST(CommonSchemas, ReadReferencesWithEscapes) {
  expect_all({{R"({"$defs": {"a/b": {"const": 1}, "c~d": {"const": 2}, "e f%": {"const": 3}},
                   "prefixItems": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c~0d"},
                                   {"$ref": "#/$defs/e%20f%25"}]})",
               {"[1,2,3]"},
               {"[1,2,2]"}}});
}

TEST(CommonSchemas, ReadPatternsOfPropertiesBesideNames) {
  expect_all(
      {{R"({"properties": {"id": {"type": "integer"}}, "patternProperties":
            {"^x-": {"type": "string"}}, "required": ["id"], "additionalProperties": false})",
        {R"({"id":1})", R"({"id":1,"x-a":"b"})", R"({"id":1, "x-a":"b", "x-b":"c"})"},
        {R"({"id":1,"y":"b"})", R"({"x-a":"b"})", R"({"id":1,"x-a":1})"}},
       // A named property that matches the pattern has to satisfy both schemas.
       {R"({"properties": {"x-a": {"maxLength": 1}}, "patternProperties": {"^x": {"minLength": 1,
            "type": "string"}}})",
        {R"({"x-a":"b"})", "{}"},
        {R"({"x-a":""})", R"({"x-a":"bc"})"}},
       // Another schema's additionalProperties applies to the names of a pattern.
       {R"({"allOf": [{"patternProperties": {"^x": {"minimum": 2}}},
                      {"additionalProperties": {"type": "integer"}}]})",
        {R"({"x":2})", "{}"},
        {R"({"x":2.5})", R"({"x":1})"}}});
}

TEST(CommonSchemas, AllowOtherNamesIfTheSchemaSaysSo) {
  expect_all(
      {{R"({"properties": {"a": {"type": "integer"}, "ab": {"type": "integer"}},
                   "required": ["a"], "additionalProperties": true})",
        {R"({"a":1})", R"({"a":1,"z":"x"})", R"({"a":1,"abc":"x","\"":2})",
         R"({"a":1,"ab":2,"é":[]})", R"({"a":1,"":0})"},
        {R"({"z":1})", R"({"a":1,"ab":"x"})", R"({"a":1,"a":"x"})", R"({"a":1,"\u0061b":"x"})"}},
       {R"({"properties": {"a": {}}, "additionalProperties": {"type": "null"}})",
        {R"({"b":null})", R"({"a":1,"b":null,"c":null})", "{}"},
        {R"({"b":1})"}}});
  // Each may have the property that the other one requires.
  expect_refused(R"({"oneOf": [
      {"properties": {"a": {}}, "required": ["a"], "additionalProperties": true},
      {"properties": {"b": {}}, "required": ["b"], "additionalProperties": true}]})",
                 "oneOf");
}

TEST(CommonSchemas, ReadConditions) {
  expect_all(
      {{R"({"type": "object", "properties": {"k": {"enum": ["x", "y"]}, "v": {"type": "integer"}},
            "required": ["k"], "if": {"properties": {"k": {"const": "x"}}},
            "then": {"required": ["v"]}, "else": {"properties": {"v": {"maximum": 3}}}})",
        {R"({"k":"x","v":10})", R"({"k":"y"})", R"({"k":"y","v":3})"},
        {R"({"k":"x"})", R"({"k":"y","v":4})"}},
       {R"({"type": "integer", "if": {"minimum": 10}, "then": {"maximum": 12},
            "else": {"const": 3}})",
        {"3", "10", "12"},
        {"4", "9", "13"}},
       {R"({"properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "dependentRequired": {"a": ["b"]}})",
        {R"({"a":"x","b":"y"})", R"({"b":"y"})", "{}"},
        {R"({"a":"x"})"}},
       {R"({"properties": {"a": {}, "b": {}}, "dependentSchemas":
            {"a": {"properties": {"b": {"type": "null"}}}}})",
        {R"({"a":1,"b":null})", R"({"b":1})", R"({"a":1})"},
        {R"({"a":1,"b":1})"}}});
  expect_refused(R"({"if": {"pattern": "a"}, "then": {"maxLength": 3}})", "not, and if with else");
  expect_refused(R"({"unevaluatedProperties": false, "if": {"required": ["a"]},
                     "then": {"required": ["b"]}})",
                 "unevaluatedProperties");
}

TEST(CommonSchemas, ReadNot) {
  expect_all(
      {{R"({"type": "string", "not": {"const": "x"}})",
        {"\"y\"", "\"xx\"", "\"\"", "\"xy\\n\""},
        {"\"x\"", "\"\\u0078\""}},
       {R"({"type": "string", "not": {"enum": ["", "ab", "ac"]}})",
        {"\"a\"", "\"abc\"", "\"b\""},
        {"\"\"", "\"ab\"", "\"ac\""}},
       {R"({"enum": ["a", 1, null], "not": {"enum": [1.0, "b"]}})", {"\"a\"", "null"}, {"1"}},
       {R"({"type": "number", "not": {"enum": [3, 1]}, "maximum": 5})",
        {"2", "5", "-7", "1.5", "3.01"},
        {"1", "1.0", "3", "6"}},
       {R"({"type": ["boolean", "null"], "not": {"const": true}})", {"false", "null"}, {"true"}},
       {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}},
                   "not": {"required": ["a", "b"]}})",
        {"{}", R"({"a":1})", R"({"b":2})"},
        {R"({"a":1,"b":2})"}},
       {R"({"type": "integer", "not": {"anyOf": [{"minimum": 5}, {"const": 2}]}})",
        {"4", "3", "-7"},
        {"5", "2"}}});
}

TEST(CommonSchemas, ReadContains) {
  expect_all({{R"({"contains": {"const": 1}})", {"[1]", "[2, 1]", "[1,2]"}, {"[]", "[2]"}},
              {R"({"items": {"type": "integer"}, "contains": {"minimum": 5}, "minContains": 2,
                   "maxItems": 3})",
               {"[5,6]", "[1,5,6]", "[5,1,6]", "[5,6,1]"},
               {"[5]", "[5,1]", "[1,5,6,1]", "[5,\"a\",6]"}},
              {R"({"contains": {"type": "null"}, "minItems": 3})",
               {"[1,null,1]", "[null,null,null,null]"},
               {"[null]", "[1,1,1]"}}});
  expect_refused(R"({"contains": {}, "maxContains": 2})", "maxContains");
  expect_refused(R"({"contains": {}, "prefixItems": [{}]})", "contains cannot");
}

TEST(CommonSchemas, CompareNumbersExactly) {
  // As doubles, 2^63 - 1 and 2^63 are equal.
  expect_all({{R"({"type": "integer", "minimum": 0, "maximum": 9223372036854775807})",
               {"0", "9223372036854775807", "1234567890123456789"},
               {"-1", "9223372036854775808"}},
              {R"({"type": "integer", "minimum": 0, "allOf": [{"maximum": 9223372036854775807},
                                                       {"maximum": 9223372036854775806}]})",
               {"9223372036854775806"},
               {"9223372036854775807"}},
              {R"({"enum": [9223372036854775807, 9223372036854775808, 18446744073709551615],
            "allOf": [{"maximum": 9223372036854775807}, {"not": {"const": -1}}]})",
               {"9223372036854775807"},
               {"9223372036854775808", "18446744073709551615"}},
              {R"({"type": "number"})", {"12345678901234567890", "-0", "1E-7"}, {"01", "1."}},
              {R"({"const": 1.0})", {"1", "1.0"}, {"1.5"}},
              {R"({"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 1000})",
               {"0", "999.99", "1000", "0.5"},
               {"0.005", "1000.01", "-0.01"}}});
  expect_error(ErrorKind::InvalidArgument, {"maximum has more digits"},
               [] { Reader reader(R"({"maximum": 18446744073709551617})"); });
}

TEST(CommonSchemas, ReadStrings) {
  expect_all({{R"({"pattern": "^(a|b)$|^c+$"})", {"\"a\"", "\"ccc\""}, {"\"ab\"", "\"d\""}},
              {R"({"pattern": "^a|b$"})", {"\"ax\"", "\"xb\""}, {"\"xa\"", "\"bx\""}},
              {R"({"maxLength": 1})", {"\"\\ud83d\\ude00\"", "\"é\""}, {"\"\\ud83d\"", "\"ab\""}},
              {R"({"type": "string", "format": "uuid"})",
               {"\"123E4567-E89B-12D3-A456-426614174000\""},
               {"\"123E4567-E89B-12D3-A456-42661417400\""}}});
}

}  // namespace
}  // namespace fovea::text
