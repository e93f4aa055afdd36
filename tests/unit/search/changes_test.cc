// Indexes that are built and changed, with the small models of the goldens.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "fovea/infer/search.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

const char* const kModels[] = {"tests/goldens/sentence_model", "tests/goldens/sparse_model",
                               "tests/goldens/multi_vector_model"};

class ChangedIndex : public testing::Test {
 protected:
  ChangedIndex() {
    make_directories(texts_ + "/more");
    write("fox.txt",
          "the fox sees the bird in the night .\n\nlight falls on the eye in the day .\n");
    write("more/eye.md", "eye\n\nthe eye never sleeps .\n");
    write("rows.jsonl",
          "{\"text\": \"a bird sleeps in the night\", \"label\": \"bird\"}\n"
          "{\"text\": \"the bird hears the fox\", \"label\": \"bird\", \"date\": \"2020-01-02\"}\n"
          "{\"text\": \"a fox never sleeps on the day\", \"label\": \"fox\"}\n");
  }
  void write(const std::string& name, const std::string& text) {
    write_file_atomically(texts_ + "/" + name, text);
  }
  static SearchBuildOptions cut(VectorPrecision precision = VectorPrecision::float32) {
    SearchBuildOptions options;
    options.passage_tokens = 10;
    options.vectors = precision;
    return options;
  }
  SearchBuild build(const std::string& model, const SearchBuildOptions& options = cut()) {
    return build_search_index(texts_, model, index_, options);
  }

  // Expects that a search in the index has the bits of one in an index that is built anew.
  void equals_new_index(const std::string& model, VectorPrecision precision) {
    const std::string other = folder_ / "other";
    build_search_index(texts_, model, other, cut(precision));
    const SearchIndex changed = SearchIndex::open(index_), built = SearchIndex::open(other);
    EXPECT_EQ(changed.passages(), built.passages());
    for (const bool hybrid : {false, true}) {
      for (const auto& where : {std::vector<std::string>{}, {"label=bird"}, {"file=**.md"}}) {
        for (const char* query : {"a bird sees", "the eye never sleeps", "day"}) {
          SearchOptions options;
          options.hybrid = hybrid;
          options.where = where;
          const auto found = changed.search(query, 100, options),
                     wanted = built.search(query, 100, options);
          ASSERT_EQ(found.size(), wanted.size()) << query;
          for (size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].text, wanted[i].text) << query;
            EXPECT_EQ(found[i].file, wanted[i].file);
            EXPECT_EQ(found[i].line, wanted[i].line);
            EXPECT_EQ(found[i].score, wanted[i].score) << query;
            EXPECT_EQ(found[i].similarity, wanted[i].similarity);
            EXPECT_EQ(found[i].fields, wanted[i].fields);
          }
        }
      }
    }
    remove_tree(other);
  }

  TemporaryFolder folder_;
  std::string texts_ = folder_ / "texts", index_ = folder_ / "index";
};

TEST_F(ChangedIndex, EqualsOneThatIsBuiltAnew) {
  struct Case {
    const char* model;
    VectorPrecision precision;
  };
  for (const auto& [model, precision] :
       {Case{kModels[0], VectorPrecision::float32}, Case{kModels[0], VectorPrecision::int8},
        Case{kModels[0], VectorPrecision::binary}, Case{kModels[1], VectorPrecision::float32},
        Case{kModels[2], VectorPrecision::float32}}) {
    SCOPED_TRACE(model);
    build(model, cut(precision));
    write("new.txt", "the bird  hears the fox\n\nday and night\n");  // the first is known
    SearchBuild added = add_to_search_index(index_, {texts_ + "/new.txt"});
    EXPECT_EQ(added.files, 1);
    EXPECT_EQ(added.passages, 2);
    equals_new_index(model, precision);
    write("fox.txt", "the fox never sleeps .\n");  // replaces two passages by one
    EXPECT_EQ(add_to_search_index(index_, {"fox.txt"}).embedded, 1);
    equals_new_index(model, precision);
    std::filesystem::remove(texts_ + "/more/eye.md");
    EXPECT_EQ(delete_from_search_index(index_, {"more"}), 1);
    equals_new_index(model, precision);
    // The first of two equal texts goes, so that the second is found.
    std::filesystem::remove(texts_ + "/new.txt");
    EXPECT_EQ(delete_from_search_index(index_, {texts_ + "/new.txt"}), 1);
    equals_new_index(model, precision);
    write("more/eye.md", "eye\n\nthe eye never sleeps .\n");
    write("fox.txt",
          "the fox sees the bird in the night .\n\nlight falls on the eye in the day .\n");
    add_to_search_index(index_, {texts_});
    equals_new_index(model, precision);
    remove_tree(index_);
  }
}

TEST_F(ChangedIndex, MergesSmallParts) {
  build(kModels[0]);
  size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "n" + std::to_string(i) + ".txt";
    write(name, "a bird sleeps " + std::string(static_cast<size_t>(i % 4), '.') + " day\n");
    add_to_search_index(index_, {name});
    if (i % 5 == 0)
      delete_from_search_index(index_, {name}), std::filesystem::remove(texts_ + "/" + name);
    most = std::max(most, list_folders(index_).size());
    EXPECT_LE(most, 10u);
  }
  EXPECT_GE(most, 8u);
  equals_new_index(kModels[0], VectorPrecision::float32);
}

TEST_F(ChangedIndex, OfSeveralPartsEqualsOneOfASingle) {
  SearchBuildOptions options = cut();
  options.part_passages = 2;
  EXPECT_EQ(build(kModels[0], options).passages, 6);
  EXPECT_EQ(list_folders(index_).size(), 3u);
  equals_new_index(kModels[0], VectorPrecision::float32);
  EXPECT_EQ(build(kModels[0], options).embedded, 0);
  add_to_search_index(index_, {"rows.jsonl"}, "", options);
  equals_new_index(kModels[0], VectorPrecision::float32);
}

TEST_F(ChangedIndex, EqualTextsAreFoundOnce) {
  write("again.txt", "the bird \n hears the  fox\n");
  const SearchBuild built = build(kModels[0]);
  EXPECT_EQ(built.duplicates, 1);
  const SearchIndex index = SearchIndex::open(index_);
  EXPECT_EQ(index.passages(), built.passages);
  const auto found = [&](const std::vector<std::string>& where) {
    SearchOptions options;
    options.where = where;
    std::string files;
    for (const FoundPassage& p : index.search("the bird hears the fox", 100, options))
      if (p.text.find("hears") != std::string::npos) files += p.file + " ";
    return files;
  };
  EXPECT_EQ(found({}), "again.txt ");
  EXPECT_EQ(found({"file=rows.jsonl"}), "rows.jsonl ");
  EXPECT_EQ(found({"date=2020"}), "rows.jsonl ");
}

TEST_F(ChangedIndex, RecordsHaveLinesAndFields) {
  build(kModels[0]);
  SearchOptions options;
  options.where = {"label=fox"};
  const auto found = SearchIndex::open(index_).search("sleeps", 5, options);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 3);
  EXPECT_EQ(found[0].fields, R"({"label":"fox"})");
  write("rows.jsonl", "{\"text\": \"day\"}\n{\"text\": 1}\n");
  expect_error(ErrorKind::BadFile, {"rows.jsonl:2", "\"text\""}, [&] { build(kModels[0]); });
  write("rows.jsonl", "{\"text\": \"day\"}\nnight\n");
  expect_error(ErrorKind::BadFile, {"rows.jsonl:2"}, [&] { build(kModels[0]); });
  write("rows.jsonl", "day\n{\"text\": 1}\n");  // a text like any other
  EXPECT_EQ(build(kModels[0]).files, 3);
}

TEST_F(ChangedIndex, SearchesInTheGraphIfAsked) {
  SearchBuildOptions options = cut();
  options.graph = true;
  const SearchBuild built = build(kModels[0], options);
  ASSERT_EQ(built.recall.size(), 6u);
  EXPECT_EQ(built.recall[0].recall, 1);  // a graph of few vectors finds all
  const SearchIndex index = SearchIndex::open(index_);
  SearchOptions by_graph;
  by_graph.graph_candidates = 16;
  const auto found = index.search("a bird", 4, by_graph), wanted = index.search("a bird", 4);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].score, wanted[i].score);
  write("new.txt", "a bird a bird\n");
  add_to_search_index(index_, {"new.txt"});
  delete_from_search_index(index_, {"fox.txt"});
  const SearchIndex changed = SearchIndex::open(index_);
  const auto by_both = changed.search("a bird", 100, by_graph), all = changed.search("a bird", 100);
  ASSERT_EQ(by_both.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(by_both[i].text, all[i].text);
    EXPECT_EQ(by_both[i].score, all[i].score);
  }
  build(kModels[0]);
  expect_error(ErrorKind::InvalidArgument, {"graph_candidates", "no graph"},
               [&] { SearchIndex::open(index_).search("a", 1, by_graph); });
}

TEST_F(ChangedIndex, RefusesWhatDoesNotFit) {
  SearchBuildOptions options = cut();
  options.graph = true;
  for (const char* model : {kModels[1], kModels[2]}) {
    expect_error(ErrorKind::Unsupported, {"vectors", "float32"},
                 [&] { build(model, cut(VectorPrecision::int8)); });
    expect_error(ErrorKind::Unsupported, {"graph"}, [&] { build(model, options); });
  }
  options.vectors = VectorPrecision::binary;
  expect_error(ErrorKind::Unsupported, {"graph", "float32"}, [&] { build(kModels[0], options); });
  options = cut();
  options.overlap_tokens = 10;
  expect_error(ErrorKind::InvalidArgument, {"overlap_tokens"}, [&] { build(kModels[0], options); });
  EXPECT_FALSE(is_folder(index_));
  expect_error(ErrorKind::BadFile, {"not a search index"},
               [&] { add_to_search_index(index_, {"fox.txt"}); });
  EXPECT_FALSE(is_folder(index_));
  build(kModels[0]);
  const std::string before = read_file(index_ + "/index.json");
  write_file_atomically(folder_ / "outside.txt", "text");
  write_file_atomically(texts_ + "/.hidden", "text");
  for (const std::string& name : {folder_ / "outside.txt", std::string("none.txt"),
                                  std::string("../outside.txt"), std::string(".hidden")}) {
    expect_error(ErrorKind::InvalidArgument, {name}, [&] { add_to_search_index(index_, {name}); });
    expect_error(ErrorKind::InvalidArgument, {name},
                 [&] { delete_from_search_index(index_, {"fox.txt", name}); });
  }
  expect_error(ErrorKind::InvalidArgument, {"another model"},
               [&] { add_to_search_index(index_, {"fox.txt"}, kModels[1]); });
  EXPECT_EQ(read_file(index_ + "/index.json"), before);
}

TEST_F(ChangedIndex, AnInterruptionChangesNothing) {
  SearchBuildOptions options = cut();
  options.progress = [](int64_t, int64_t) { return false; };
  expect_error(ErrorKind::Failed, {"interrupted"}, [&] { build(kModels[0], options); });
  EXPECT_FALSE(is_folder(index_));
  build(kModels[0]);
  const std::string before = read_file(index_ + "/index.json");
  write("new.txt", "day\n");
  expect_error(ErrorKind::Failed, {"interrupted"},
               [&] { add_to_search_index(index_, {"new.txt"}, "", options); });
  EXPECT_EQ(read_file(index_ + "/index.json"), before);
  EXPECT_EQ(list_folders(index_).size(), 1u);
}

}  // namespace
}  // namespace fovea::infer
