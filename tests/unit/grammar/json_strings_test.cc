#include "grammar/json_strings.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unit/grammar/reader.h"

namespace fovea::text {
namespace {

// Returns whether a schema with this keyword accepts the text as a string.
class Strings {
 public:
  Strings(const char* keyword, const std::string& value)
      : reader_(nlohmann::json{{"type", "string"}, {keyword, value}}.dump()) {}
  bool accepts(const std::string& text) { return reader_.reads(nlohmann::json(text).dump()); }
  bool reads(const std::string& json) { return reader_.reads(json); }

 private:
  Reader reader_;
};

TEST(JsonStrings, FollowAPattern) {
  Strings whole("pattern", "^[a-z]{2,4}(-[0-9]+)?$");
  for (const char* text : {"ab", "abcd", "ab-7", "abc-123"})
    EXPECT_TRUE(whole.accepts(text)) << text;
  for (const char* text : {"a", "abcde", "ab-", "xab-7 ", "AB", ""})
    EXPECT_FALSE(whole.accepts(text)) << text;
  EXPECT_FALSE(whole.reads("ab")) << "a string has quotes";
  Strings part("pattern", "b+");
  EXPECT_TRUE(part.accepts("abbc"));
  EXPECT_TRUE(part.accepts("b\n")) << "other text may surround the match";
  EXPECT_FALSE(part.accepts("ac"));
  Strings start("pattern", "^a");
  EXPECT_TRUE(start.accepts("ab"));
  EXPECT_FALSE(start.accepts("ba"));
}

TEST(JsonStrings, SpellCharactersThatJsonEscapes) {
  Strings any("pattern", "^[^a]$");
  for (const char* text : {"\"", "\\", "\n", "\t", "\x01", "é", "😀", "/"})
    EXPECT_TRUE(any.accepts(text)) << text;
  EXPECT_FALSE(any.accepts("a"));
  EXPECT_FALSE(any.reads("\"\"\"")) << "a quote needs a backslash";
  EXPECT_FALSE(any.reads("\"\n\"")) << "a line break needs a backslash";
  Strings path("pattern", R"(^[A-Z]:\\\w+$)");
  EXPECT_TRUE(path.accepts("C:\\temp"));
  EXPECT_FALSE(path.reads(R"("C:\temp")"));
}

struct FormatCase {
  const char* format;
  std::vector<const char*> valid, invalid;
};

TEST(JsonStrings, HaveFormats) {
  const FormatCase cases[] = {
      {"date",
       {"2026-11-25", "2024-02-29", "2000-02-29", "1999-12-31", "2026-04-30"},
       {"2026-13-01", "2026-00-10", "2026-04-31", "2023-02-29", "1900-02-29", "2026-1-1",
        "26-01-01"}},
      {"time", {"12:30:59Z", "00:00:00.25+01:00"}, {"24:00:00Z", "12:60:00Z", "12:30", "12:30:59"}},
      {"date-time", {"2026-11-25T18:00:00Z"}, {"2026-11-25 18:00:00Z", "2026-02-30T18:00:00Z"}},
      {"email",
       {"a@b.org", "first.last+tag@mail.example.com"},
       {"a@b", "@b.org", "a b@c.org", "a@.org"}},
      {"hostname", {"localhost", "a.b-c.org"}, {"-a.org", "a..b", ""}},
      {"ipv4", {"0.0.0.0", "127.0.0.1", "255.249.99.1"}, {"256.0.0.1", "1.2.3", "01.2.3.4"}},
      {"uri",
       {"https://example.org", "http://localhost:8080/a/b?x=1&y=%20#end", "ftp://a.b/c;d"},
       {"example.org", "http://", "http://a b", "http://a/%2"}},
      {"uuid",
       {"123e4567-e89b-12d3-a456-426614174000"},
       {"123e4567e89b12d3a456426614174000", "x"}}};
  for (const FormatCase& one : cases) {
    Strings strings("format", one.format);
    for (const char* text : one.valid)
      EXPECT_TRUE(strings.accepts(text)) << one.format << " " << text;
    for (const char* text : one.invalid)
      EXPECT_FALSE(strings.accepts(text)) << one.format << " " << text;
  }
}

TEST(JsonStrings, IgnoreOtherFormats) {
  EXPECT_TRUE(Strings("format", "color").accepts("any text"));
  Reader limited(R"({"type": "string", "format": "date", "maxLength": 3})");
  EXPECT_TRUE(limited.reads("\"abc\"")) << "limits of the length take precedence";
  Reader both(R"({"type": "string", "format": "date", "pattern": "^x$"})");
  EXPECT_TRUE(both.reads("\"x\"")) << "a pattern takes precedence";
}

}  // namespace
}  // namespace fovea::text
