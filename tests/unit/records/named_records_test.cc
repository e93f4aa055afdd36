#include "records/named_records.h"

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

const std::vector<NamedField> kNamed = {{{"_id"}}, {{"text", "body"}}, {{"title"}, false}};

using Values = std::vector<std::optional<std::string>>;

std::vector<Values> read(const std::string& text, const std::vector<NamedField>& fields = kNamed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "records", text);
  std::vector<Values> all;
  each_named_record(folder / "records", fields,
                    [&](const NamedRecord& record) { all.push_back(record.values); });
  return all;
}

TEST(NamedRecords, AreJsonOrRowsWithNames) {
  const std::vector<Values> expected = {{"1", "a, b", "x"}, {"2", "c", std::nullopt}};
  EXPECT_EQ(read("{\"_id\": 1, \"text\": \"a, b\", \"title\": \"x\", \"more\": {}}\n\n"
                 "{\"body\": \"c\", \"_id\": \"2\", \"title\": null}\n"),
            expected);
  EXPECT_EQ(read("title\t_id\ttext\nx\t1\ta, b\n\n\t2\tc\n"),
            (std::vector<Values>{{"1", "a, b", "x"}, {"2", "c", ""}}));
  EXPECT_EQ(read("_id,body\n1,\"a, b\"\n"), (std::vector<Values>{{"1", "a, b", std::nullopt}}));
  EXPECT_EQ(read("{\"_id\": true, \"text\": \"a\"}"),
            (std::vector<Values>{{"1", "a", std::nullopt}}));
  EXPECT_TRUE(read("_id\ttext\n").empty());
}

TEST(NamedRecords, AreRefusedWithTheirPlace) {
  expect_error(ErrorKind::BadFile, {"records: has no names of columns", "_id, text"},
               [] { read("1\ta\n"); });
  expect_error(ErrorKind::BadFile, {"records:2: has no \"text\""},
               [] { read("{\"_id\": 1, \"text\": \"a\"}\n{\"_id\": 2}\n"); });
  expect_error(ErrorKind::BadFile, {"records:1: \"_id\" is an array"},
               [] { read("{\"_id\": [], \"text\": \"a\"}\n"); });
  expect_error(ErrorKind::BadFile, {"records:3"}, [] { read("_id\ttext\n1\ta\n2\n"); });
  // Without required fields, two names make a row of names.
  const std::vector<NamedField> any = {{{"a"}, false}, {{"b"}, false}, {{"c"}, false}};
  EXPECT_EQ(read("b\tc\n1\t2\n", any), (std::vector<Values>{{std::nullopt, "1", "2"}}));
  expect_error(ErrorKind::BadFile, {"expected a first row with a, b, c"},
               [&] { read("b\tx\n1\t2\n", any); });
}

}  // namespace
}  // namespace fovea::text
