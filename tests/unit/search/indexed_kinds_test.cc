// An index of each kind of vectors that one model computes.

#include "base/files.h"
#include "fovea/infer/search.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

const std::string kBgeM3 = "tests/goldens/bge_m3";

class IndexedKinds : public testing::Test {
 protected:
  IndexedKinds() {
    make_directories(folder_ / "texts");
    write_file_atomically(folder_ / "texts/night.txt",
                          "the fox sees the bird in the night\n\nlight never sleeps\n");
    write_file_atomically(folder_ / "texts/day.txt", "the eye hears on the day ?\n");
  }
  std::string build(IndexedKind kind, const std::string& model = kBgeM3) {
    SearchBuildOptions options;
    options.kind = kind;
    options.passage_tokens = 9;
    const std::string index = folder_ / ("index-" + std::to_string(static_cast<int>(kind)));
    build_search_index(folder_ / "texts", model, index, options);
    return index;
  }
  TemporaryFolder folder_;
};

TEST_F(IndexedKinds, OfOneModelFindTexts) {
  for (const auto& [kind, found] :
       {std::pair{IndexedKind::automatic, 3}, {IndexedKind::dense, 3}, {IndexedKind::tokens, 3}}) {
    const std::string path = build(kind);
    const SearchIndex index = SearchIndex::open(path, kBgeM3);
    EXPECT_EQ(index.search("the fox sees the bird in the night", 9).size(), found);
    EXPECT_EQ(index.search("the fox sees the bird in the night", 1).at(0).file, "night.txt");
  }
  // By weights of tokens, only texts with a token of the query are found.
  const SearchIndex sparse = SearchIndex::open(build(IndexedKind::sparse));
  EXPECT_TRUE(sparse.search("unknown words", 9).empty());
  EXPECT_FALSE(sparse.search("the fox sees the bird in the night", 9).empty());
}

TEST_F(IndexedKinds, AreKeptWhenFilesAreAdded) {
  const std::string index = build(IndexedKind::tokens);
  write_file_atomically(folder_ / "texts/new.txt", "a bird sleeps\n");
  EXPECT_EQ(add_to_search_index(index, {"new.txt"}).embedded, 1);
  EXPECT_EQ(SearchIndex::open(index).passages(), 4);
}

TEST_F(IndexedKinds, RefuseModelsThatComputeOtherVectors) {
  expect_error(ErrorKind::InvalidArgument, {"kind: does not suit tests/goldens/sparse_model"},
               [&] { build(IndexedKind::tokens, "tests/goldens/sparse_model"); });
  expect_error(ErrorKind::Unsupported, {"vectors"}, [&] {
    SearchBuildOptions options;
    options.kind = IndexedKind::sparse;
    options.vectors = VectorPrecision::int8;
    build_search_index(folder_ / "texts", kBgeM3, folder_ / "other", options);
  });
}

}  // namespace
}  // namespace fovea::infer
