#include "records/parquet.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "fovea/core/error.h"

namespace fovea::text {
namespace {

const std::string kFolder = "tests/goldens/parquet/";

std::vector<std::string> rows_of(const std::string& path) {
  std::vector<std::string> rows;
  each_json_record(path, [&](const std::string& record, const std::string&) {
    rows.push_back(parse_json(record, path).dump());
  });
  return rows;
}

// The rows are those that pyarrow has written: lists, lists of lists, structures, missing values.
TEST(Parquet, HasTheRowsOfPyarrow) {
  const std::vector<std::string> expected = rows_of(kFolder + "rows.jsonl");
  ASSERT_EQ(expected.size(), 40);
  for (const char* const name : {"snappy", "zstd_v2", "gzip_plain", "none"})
    EXPECT_EQ(rows_of(kFolder + name + ".parquet"), expected) << name;
}

TEST(Parquet, ReadsOtherTypes) {
  EXPECT_EQ(rows_of(kFolder + "other.parquet"),
            (std::vector<std::string>{R"({"half":0.25,"image":null,"kind":"a","small":1})",
                                      R"({"half":2.0,"image":null,"kind":"a","small":2})"}));
}

TEST(Parquet, KeepsTheOrderOfColumns) {
  EXPECT_TRUE(first_json_record(kFolder + "snappy.parquet").starts_with(R"({"text":"first \"row)"));
}

TEST(Parquet, NamesWhatItDoesNotRead) {
  try {
    rows_of(kFolder + "lz4.parquet");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find("column text: its compression"), std::string::npos);
  }
}

// Each prefix, and the file with each byte changed, is read or refused.
TEST(Parquet, RefusesDamage) {
  const std::string file = read_file(kFolder + "none.parquet");
  const JsonUse ignore = [](const std::string&, const std::string&) {};
  for (size_t bytes = 0; bytes < file.size(); bytes += 7)
    EXPECT_THROW(each_parquet_record(std::string_view(file).substr(0, bytes), "x", ignore), Error);
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(~damaged[i]);
    try {
      each_parquet_record(damaged, "x", ignore);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace fovea::text
