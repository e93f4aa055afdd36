#include "records/table.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

using Columns = std::vector<std::string>;

class TableFile : public testing::Test {
 protected:
  Table read(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return read_table(folder_ / name, [](const Columns& names) {
      return has_name(names, {"text"}) && has_name(names, {"label"});
    });
  }
  // Returns the columns of all rows.
  std::vector<Columns> rows(const std::string& name, const std::string& content) const {
    std::vector<Columns> all;
    for (const Table::Row& row : read(name, content).rows) all.push_back(row.columns);
    return all;
  }
  TemporaryFolder folder_;
};

TEST_F(TableFile, OfCommasHasQuotes) {
  EXPECT_EQ(rows("a.csv", "\"a, b\",\"say \"\"x\"\"\"\r\n\"two\r\nlines\",c\"d\n\n,\n"),
            (std::vector<Columns>{{"a, b", "say \"x\""}, {"two\nlines", "c\"d"}, {"", ""}}));
  const Table table = read("a.csv", "\"two\nlines\",b\n\nc,d\n");
  EXPECT_EQ(table.rows[1].location, (folder_ / "a.csv") + ":4");
  EXPECT_EQ(table.blank, 1);
  expect_error(ErrorKind::BadFile, {"a.csv:2: has a quote that does not end"},
               [&] { read("a.csv", "a,b\n\"c,d\n"); });
  expect_error(ErrorKind::BadFile, {"a.csv:2: has text after a quote that ends; expected a comma"},
               [&] { read("a.csv", "a,b\n\"c\" d,e\n"); });
}

// A quote at the beginning of a column joined the following lines up to the next one.
TEST_F(TableFile, OfTabsHasQuotesOnlyAroundColumns) {
  EXPECT_EQ(rows("a.tsv", "\"Second\tx\nthird\ty\n\"fourth\tz\n"),
            (std::vector<Columns>{{"\"Second", "x"}, {"third", "y"}, {"\"fourth", "z"}}));
  EXPECT_EQ(rows("a.tsv", "\"ja\"\t\"say \"\"x\"\"\"\t\"a\" and \"b\"\n"),
            (std::vector<Columns>{{"\"ja\"", "say \"x\"", "\"a\" and \"b\""}}));
  EXPECT_EQ(rows("a.tsv", "\"text\"\t\"label\"\n\"ja\"\t\"x\"\n"),
            (std::vector<Columns>{{"ja", "x"}}));
  EXPECT_EQ(rows("a.tsv", "a;b,c\td\r\n"), (std::vector<Columns>{{"a;b,c", "d"}}));
}

TEST_F(TableFile, NamesColumnsInAnyOrderAndCase) {
  const Table table = read("a.csv", "\xEF\xBB\xBFLabel, TEXT ,id\nx,y,1\n");
  EXPECT_EQ(table.names, (Columns{"label", "text", "id"}));
  EXPECT_EQ(table.column({"sentence", "text"}), 1u);
  EXPECT_FALSE(table.column({"score"}));
  EXPECT_EQ(table.rows.at(0).columns, (Columns{"x", "y", "1"}));
  EXPECT_TRUE(read("b.csv", "good film,pos\n").names.empty());
  expect_error(ErrorKind::BadFile, {"c.csv:3: has 1 column; expected 2, as in the first line"},
               [&] { read("c.csv", "text,label\na,b\nc\n"); });
}

TEST_F(TableFile, IsDividedAsItsFirstRow) {
  EXPECT_EQ(rows("a.csv", "Text;Label\n\"a; b, c\";x\n"), (std::vector<Columns>{{"a; b, c", "x"}}));
  EXPECT_EQ(rows("a.csv", "a;b\n"), (std::vector<Columns>{{"a", "b"}}));
  EXPECT_EQ(rows("a.csv", "a, b;c\n"), (std::vector<Columns>{{"a", " b;c"}}));
  EXPECT_EQ(rows("a.csv", "a\tb\n"), (std::vector<Columns>{{"a", "b"}}));
  EXPECT_EQ(rows("a.txt", "# a comment\na,b\tc\n").at(1), (Columns{"a,b", "c"}));
  EXPECT_EQ(rows("a.txt", "a,b\n"), (std::vector<Columns>{{"a", "b"}}));
}

TEST(FiniteNumber, IsAWholeText) {
  EXPECT_EQ(finite_number("-2.5"), -2.5);
  for (const char* text : {"", "1 ", "1x", "nan", "inf"}) EXPECT_FALSE(finite_number(text)) << text;
}

}  // namespace
}  // namespace fovea::text
