#include "search/conditions.h"

#include <tuple>

#include "search/index_contents.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

TEST(Patterns, CompareComponentsOfNames) {
  for (const auto& [name, pattern, fits] :
       std::initializer_list<std::tuple<const char*, const char*, bool>>{
           {"docs/a.md", "docs/*.md", true},
           {"docs/more/a.md", "docs/*.md", false},
           {"docs/more/a.md", "docs/**.md", true},
           {"docs/more/a.md", "docs/**/a.md", true},
           {"docs/more/a.md", "*.md", true},
           {"docs/a.md", "*.txt", false},
           {"a.md", "docs/*", false},
           {"a.md", "?.md", true},
           {"ab.md", "?.md", false},
           {"docs/a", "docs?a", false},
           {"docs/more/a.md", "**", true},
           {"", "*", true},
           {"a", "", false},
           {"a*b", "a*b", true},
           {"docs/a.md", "docs", false},
           {"aaaaaaaaab", "*a*a*a*a*a*c", false}})
    EXPECT_EQ(fits_pattern(name, pattern), fits) << name << " " << pattern;
  // Takes no exponential time.
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  EXPECT_FALSE(fits_pattern(std::string(2000, 'a'), stars + "b"));
}

class FilteredIndex : public testing::Test {
 protected:
  FilteredIndex() {
    const std::vector<IndexedPassage> passages = {
        {"docs/a.md", 1, 1, "p0"},
        {"docs/b.txt", 1, 1, "p1"},
        {"rows.jsonl", 1, 1, "p2", R"({"label":"sport","size":9})"},
        {"rows.jsonl", 2, 2, "p3", R"({"date":"2025-06-30","label":"art","size":10.5})", 1},
        {"rows.jsonl", 3, 3, "p4", R"({"date":"2025-07","label":"sport","size":"large"})", 2}};
    const TextRows rows = distinct_texts(passages);
    std::vector<std::string_view> texts;
    std::vector<uint64_t> groups;
    for (const IndexedPassage& passage : passages) {
      texts.emplace_back(passage.text);
      groups.push_back(group_of(passage.text));
    }
    IndexSettings settings = {"/texts", "/model", "0", 4};
    settings.passage_tokens = 10;
    IndexWriter writer(path_);
    const PartEntry part = writer.write({passages,
                                         rows,
                                         groups,
                                         {{"docs/a.md", "2024-12-31T23:59:59Z"},
                                          {"docs/b.txt", "2026-02-03T04:05:06Z"},
                                          {"rows.jsonl", "2023-01-01T00:00:00Z"}},
                                         DenseVectors(5, 4, VectorPrecision::float32),
                                         WordIndex(texts)});
    writer.commit({settings, {part}});
  }
  // Returns the numbers of the passages that fulfil the conditions.
  std::string found(const std::vector<std::string>& conditions) const {
    const IndexContents index(path_);
    std::string numbers;
    const IndexContents::Selection selection = index.where(Conditions(conditions));
    for (const int32_t number : selection.of(0))
      if (number >= 0) numbers += std::to_string(number);
    return numbers;
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "index";
};

TEST_F(FilteredIndex, SelectsByFileDateAndField) {
  EXPECT_EQ(found({}), "01234");
  EXPECT_EQ(found({"file=docs/*"}), "01");
  EXPECT_EQ(found({"file!=docs/*"}), "234");
  EXPECT_EQ(found({"file=*.md"}), "0");
  EXPECT_EQ(found({"date=2025"}), "34");
  EXPECT_EQ(found({"date>=2025-07"}), "14");
  EXPECT_EQ(found({"date<=2025-06-30"}), "023");
  EXPECT_EQ(found({"date<2024"}), "2");
  EXPECT_EQ(found({"date>2024-12-31T23"}), "134");
  EXPECT_EQ(found({"label=sport"}), "24");
  EXPECT_EQ(found({"label!=sport"}), "3");  // passages without a label fulfil no condition on it
  EXPECT_EQ(found({"size>9"}), "34");       // as numbers if both are, else as texts
  EXPECT_EQ(found({"size<=9.0"}), "2");
  EXPECT_EQ(found({"label=sport", "date>=2025"}), "4");
  EXPECT_EQ(found({"label=sport", "file=docs/*"}), "");
  EXPECT_EQ(found({"other=1"}), "");
}

TEST(Conditions, RefuseWhatTheyDoNotUnderstand) {
  for (const char* text : {"", "label", "=x", "label!x", "!=x", "file>a", "file<=a", "date=now",
                           "date>=26", "date=2026-1", "date>=2026-01-01T00:00:00+01:00"})
    expect_error(ErrorKind::InvalidArgument, {"where", "expected"}, [&] { Conditions({text}); });
}

}  // namespace
}  // namespace fovea::infer
