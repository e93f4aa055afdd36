#include "http/multipart.h"

#include <gtest/gtest.h>

#include "http/request_head.h"

namespace fovea::http {
namespace {

const std::string kType = "multipart/form-data; boundary=xyz";

// Returns a part with these headers.
std::string part(const std::string& headers, const std::string& content) {
  return "--xyz\r\n" + headers + "\r\n\r\n" + content + "\r\n";
}
std::string named(const std::string& name, const std::string& content) {
  return part("Content-Disposition: form-data; name=\"" + name + "\"", content);
}
const std::string kEnd = "--xyz--\r\n";

void refused(const std::string& type, const std::string& body, const std::string& text) {
  try {
    form_parts(type, body);
    ADD_FAILURE() << "accepted: " << body;
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status, 400);
    EXPECT_NE(refusal.message.find(text), std::string::npos) << refusal.message;
    EXPECT_EQ(refusal.message.find('\n'), std::string::npos);
  }
}

TEST(Multipart, ReadsNamesFilenamesAndContents) {
  const std::string body =
      named("purpose", "fine-tune") +
      part(
          "content-type: text/plain\r\nCONTENT-DISPOSITION: Form-Data; name=file; "
          "filename=\"a \\\"b\\\"; c.jsonl\"",
          std::string("line\r\n--xy\0z\r\n", 13)) +
      kEnd;
  const auto parts = form_parts("Multipart/Form-Data; charset=utf-8; boundary=\"xyz\"", body);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].name, "purpose");
  EXPECT_EQ(parts[0].content, "fine-tune");
  EXPECT_FALSE(parts[0].filename.has_value());
  EXPECT_EQ(parts[1].name, "file");
  EXPECT_EQ(parts[1].filename, "a \"b\"; c.jsonl");
  EXPECT_EQ(parts[1].content, std::string_view("line\r\n--xy\0z\r\n", 13));
  EXPECT_EQ(form_parts(kType, named("a", "") + "--xyz--")[0].content, "");
  EXPECT_TRUE(form_parts(kType, kEnd).empty());
}

TEST(Multipart, RefusesTypesWithoutAValidBoundary) {
  for (const std::string type :
       {"", "multipart/form-data", "text/plain; boundary=xyz", "multipart/mixed; boundary=xyz"})
    refused(type, kEnd, "expected multipart/form-data with a boundary");
  refused("multipart/form-data; boundary=", "--\r\n", "boundary is malformed");
  refused("multipart/form-data; boundary=" + std::string(71, 'a'), "", "boundary is malformed");
  refused("multipart/form-data; boundary=\"a\rb\"", "", "boundary is malformed");
  refused("multipart/form-data; boundary=\"xyz", kEnd, "has no end");
  refused("multipart/form-data; boundary=a; boundary=b", kEnd, "occurs twice");
  refused("multipart/form-data; boundary", kEnd, "; name=value");
  refused("multipart/form-data; boundary=\"a\"b", kEnd, "; name=value");
}

TEST(Multipart, RefusesMalformedParts) {
  const std::string good = named("a", "1");
  refused(kType, "", "expected the boundary");
  refused(kType, "--other--", "expected the boundary");
  refused(kType, good, "the last boundary is missing");
  refused(kType, "--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\n1", "last boundary");
  refused(kType, good + "--xyz-", "new line after a boundary");
  refused(kType, good + "--xyzw\r\n", "new line after a boundary");
  refused(kType, good + kEnd + "more", "nothing after");
  refused(kType, part("Content-Type: text/plain", "1") + kEnd, "has no name");
  refused(kType, part("Content-Disposition: form-data", "1") + kEnd, "with a name");
  refused(kType, part("Content-Disposition: attachment; name=a", "1") + kEnd, "with a name");
  const std::string twice = "Content-Disposition: form-data; name=a";
  refused(kType, part(twice + "\r\n" + twice, "1") + kEnd, "one Content-Disposition");
  refused(kType, part("Content-Disposition: form-data; name=\"a", "1") + kEnd, "has no end");
  refused(kType, part("X: " + std::string(5000, 'x'), "1") + kEnd, "4096");
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "X: y\r\n";
  refused(kType, part(lines + "Content-Disposition: form-data; name=a", "1") + kEnd, "4096");
  std::string many;
  for (int i = 0; i < 17; ++i) many += good;
  refused(kType, many + kEnd, "more than 16 parts");
}

}  // namespace
}  // namespace fovea::http
