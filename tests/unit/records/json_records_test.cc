#include "records/json_records.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

class JsonRecordFiles : public testing::Test {
 protected:
  std::string file(const std::string& content) const {
    write_file_atomically(folder_ / "a.json", content);
    return folder_ / "a.json";
  }
  // Returns ":line" and the text of each record.
  std::string records(const std::string& content) const {
    std::string all;
    each_json_record(file(content), [&](const std::string& record, const std::string& location) {
      all += location.substr(location.rfind(':')) + record;
    });
    return all;
  }
  TemporaryFolder folder_;
};

TEST_F(JsonRecordFiles, AreLines) {
  EXPECT_EQ(records("{}\n\n{\"a\": \"}\"}"), ":1{}:3{\"a\": \"}\"}");
  EXPECT_EQ(records("\xEF\xBB\xBF{}\r\n \r\n{}\r\n"), ":1{}\r:3{}\r");
  EXPECT_EQ(records("[1]\n[2]"), ":1[1]:2[2]");
  EXPECT_EQ(records("5\n{}"),
            ":1"
            "5:2{}");
  EXPECT_EQ(records(""), "");
}

TEST_F(JsonRecordFiles, MayTakeSeveralLines) {
  EXPECT_EQ(records("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n{\n}\n"),
            ":1{\n  \"a\": {\n    \"b\": 1\n  }\n}:6{\n}");
  // A broken record ends where the next one begins, so that its own line is named.
  EXPECT_EQ(records("{\"a\": 1\n{\"b\": 2}\n"), ":1{\"a\": 1\n:2{\"b\": 2}");
  EXPECT_EQ(records("{\"a\": \"1\n{\"b\": 2}\n"), ":1{\"a\": \"1:2{\"b\": 2}");
  EXPECT_EQ(records("{} {}\n{}"), ":1{} {}:2{}");
  EXPECT_EQ(records("{}\n{\"a\": 1"), ":1{}:2{\"a\": 1");
}

TEST_F(JsonRecordFiles, AreTheObjectsOfAnArray) {
  EXPECT_EQ(records("[{\"a\": [{}]},\n\n {\"b\": \"}\\\"{\"} ]\n"),
            ":1{\"a\": [{}]}:3{\"b\": \"}\\\"{\"}");
  EXPECT_EQ(records("\xEF\xBB\xBF[\n{\n},{}]"), ":2{\n}:3{}");
  for (const char* content : {"\n[\n{\"a\": 1}\n", "[{}, 1]", "[{}] x", "[{},]", "[{} {}]"})
    expect_error(ErrorKind::BadFile, {"a.json:", "expected one of them"},
                 [&] { records(content); });
  expect_error(ErrorKind::BadFile, {"a.json:2", "an object that does not end"},
               [&] { records("[\n{\"a\": \"}\"]"); });
}

TEST_F(JsonRecordFiles, HaveAFirstOneOfAnySize) {
  EXPECT_EQ(first_json_record(file("\n[ {\"a\": 1}, 5]")), "{\"a\": 1}");
  EXPECT_EQ(first_json_record(file("\n\n{\"a\": 1}\n{}")), "{\"a\": 1}");
  EXPECT_EQ(first_json_record(file(" \n")), "");
  const std::string large = "{\"a\": \"" + std::string(3 << 20, 'x') + "\"}";
  EXPECT_EQ(first_json_record(file(large + "\n{}")), large);
}

TEST_F(JsonRecordFiles, AreText) {
  expect_error(ErrorKind::BadFile, {"a.json:2:8: is not UTF-8"},
               [&] { records("{}\n{\"a\": \"\xFF\"}"); });
}

}  // namespace
}  // namespace fovea::text
