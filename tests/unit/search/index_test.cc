#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "base/json.h"
#include "fovea/core/random.h"
#include "search/dense_search.h"
#include "search/text_files.h"
#include "search/word_matches.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

Tensor random_vectors(int64_t count, int64_t width) {
  const Tensor vectors = empty({count, width});
  Random random(3, Stream::init);
  for (int64_t i = 0; i < count; ++i) {
    float* x = vectors.data_as<float>() + i * width;
    double squares = 0;
    for (int64_t c = 0; c < width; ++c) {
      x[c] = random.normal();
      squares += x[c] * x[c];
    }
    for (int64_t c = 0; c < width; ++c) x[c] /= static_cast<float>(std::sqrt(squares));
  }
  return vectors;
}

TEST(VectorGraph, ReturnsTheNearestWithTheirSimilarity) {
  const Tensor vectors = random_vectors(500, 20);
  const VectorGraph graph(vectors, Similarity::cosine);
  for (const int64_t i : {0, 7, 499}) {
    const float* x = vectors.data_as<float>() + i * 20;
    const auto found = graph.nearest({x, 20}, 3, 64);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].number, i);
    EXPECT_NEAR(found[0].similarity, 1, 1e-6);
    EXPECT_GT(found[1].similarity, found[2].similarity);
    EXPECT_EQ(graph.vector(i), std::vector<float>(x, x + 20));
  }
  EXPECT_EQ(graph.nearest({vectors.data_as<float>(), 20}, 1000, 1).size(), 500u);
  EXPECT_EQ(graph.nearest({vectors.data_as<float>(), 20}, 3, 1000).size(), 3u);
  EXPECT_EQ(graph.bytes(), VectorGraph(vectors, Similarity::cosine).bytes());
}

TEST(VectorGraph, SupportsThreeSimilarities) {
  const Tensor vectors = tensor_of({3, 0, 1, 1}, {2, 2});
  const float query[] = {1, 1};
  EXPECT_NEAR(VectorGraph(vectors, Similarity::dot).nearest(query, 1, 8)[0].similarity, 3, 1e-6);
  const auto nearest = VectorGraph(vectors, Similarity::euclidean).nearest(query, 2, 8);
  EXPECT_EQ(nearest[0].number, 1);
  EXPECT_NEAR(nearest[1].similarity, -std::sqrt(5.0), 1e-6);
  expect_error(ErrorKind::Unsupported, {"manhattan"},
               [&] { VectorGraph(vectors, Similarity::manhattan); });
}

PartContents part_of(const std::vector<IndexedPassage>& passages, const Tensor& vectors) {
  const TextRows rows = distinct_texts(passages);
  DenseVectors dense(std::ssize(rows.passages), vectors.dim(1), VectorPrecision::float32);
  std::vector<std::string_view> texts;
  std::vector<uint64_t> groups;
  for (size_t row = 0; row < rows.passages.size(); ++row) {
    const IndexedPassage& passage = passages[rows.passages[row]];
    dense.set(static_cast<int64_t>(row),
              vectors.data_as<float>() + static_cast<int64_t>(row) * vectors.dim(1));
    texts.emplace_back(passage.text);
    groups.push_back(group_of(passage.text));
  }
  return {passages,
          rows,
          groups,
          {{"a.txt", "2026-01-02T03:04:05Z"}},
          dense,
          WordIndex(texts),
          VectorGraph(dense.tensors().at("values"), Similarity::dot)};
}

class IndexFolder : public testing::Test {
 protected:
  IndexFolder() {
    std::vector<IndexedPassage> passages;
    for (int i = 0; i < 5; ++i)
      passages.push_back({"a.txt", i + 1, i + 2, "passage \"ä\"\n" + std::to_string(i), "", i});
    settings_ = {"/texts", "/model", "0123", 8, Similarity::dot};
    settings_.passage_tokens = 10;
    settings_.recall = {{16, 0.5}};
    IndexWriter writer(path_);
    const PartEntry part = writer.write(part_of(passages, random_vectors(5, 8)));
    writer.commit({settings_, {part}});
  }
  // Opens everything that is opened late.
  void open() const {
    const IndexContents index(path_);
    const IndexPart& part = index.part(0);
    for (int64_t i = 0; i < index.passages(); ++i) index.passage(i);
    static_cast<void>(part.dense());
    static_cast<void>(part.words());
    static_cast<void>(part.graph());
  }
  void refused(const std::string& name) {
    expect_error(ErrorKind::BadFile, {path_ + "/" + name}, [&] { open(); });
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "index";
  IndexSettings settings_;
};

TEST_F(IndexFolder, RoundTrips) {
  const IndexContents index(path_);
  EXPECT_EQ(index.settings().folder, "/texts");
  EXPECT_EQ(index.settings().fingerprint, "0123");
  EXPECT_EQ(index.settings().similarity, Similarity::dot);
  ASSERT_EQ(index.settings().recall.size(), 1u);
  EXPECT_EQ(index.settings().recall[0].recall, 0.5);
  ASSERT_EQ(index.passages(), 5);
  EXPECT_EQ(index.all().count, 5);
  EXPECT_EQ(index.passage(4).text, "passage \"ä\"\n4");
  EXPECT_EQ(index.passage(4).last_line, 6);
  EXPECT_EQ(index.part(0).table().files()[0].date, "2026-01-02T03:04:05Z");
  const Tensor vectors = random_vectors(5, 8);
  const float* query = vectors.data_as<float>() + 16;
  EXPECT_EQ(best_by_vectors(index, index.all(), {query, 8}, 1).at(0).number, 2);
  EXPECT_EQ(best_by_graphs(index, index.all(), {query, 8}, 1, 16).at(0).number, 2);
}

TEST_F(IndexFolder, DetectsEveryFlippedByte) {
  for (const char* name : {"1/graph.hnsw", "1/passages.jsonl", "1/passages.safetensors",
                           "1/words.safetensors", "1/vectors.safetensors", "index.json"}) {
    const std::string file = path_ + "/" + name, whole = read_file(file);
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 13) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      write_file_atomically(file, bytes);
      try {
        open();
        // White space in JSON has no meaning.
        EXPECT_TRUE(whole[at] == ' ' || whole[at] == '\n') << name << " at " << at;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
      }
    }
    write_file_atomically(file, whole.substr(0, whole.size() / 2));
    expect_error(ErrorKind::BadFile, {path_}, [&] { open(); });
    remove_tree(file);
    if (std::string(name) != "1/graph.hnsw")  // a part may have none
      expect_error(ErrorKind::BadFile, {path_}, [&] { open(); });
    write_file_atomically(file, whole);
  }
}

// Forges values and the hash that protects them.
TEST_F(IndexFolder, RefusesOrSurvivesAForgedDescription) {
  using Json = nlohmann::json;
  const std::string file = path_ + "/index.json";
  const Json whole = read_json(file);
  const auto forge = [&](Json json) {
    json.erase("hash");
    json["hash"] = hash_text(hash_bytes(json.dump()));
    write_file_atomically(file, json.dump());
    try {
      open();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return false;
    }
  };
  ASSERT_TRUE(forge(whole));
  const Json values[] = {Json(),        Json(-1),         Json(0),
                         Json(7),       Json(INT64_MAX),  Json(1e300),
                         Json("\n"),    Json("../1"),     Json(std::string(100'000, 'x')),
                         Json::array(), Json::array({1}), Json::object()};
  for (const auto& [key, old] : whole.items()) {
    for (const Json& value : values) {
      if (value == old) continue;
      Json json = whole;
      json[key] = value;
      const bool allowed =
          ((key == "folder" || key == "model" || key == "fingerprint") && value.is_string()) ||
          key == "hash" || ((key == "passage_tokens" || key == "overlap_tokens") && value == 7) ||
          ((key == "recall" || key == "parts") && value == Json::array());
      if (key == "parts" && value == Json::array()) continue;  // an index without passages
      EXPECT_EQ(forge(json), allowed) << key << " " << value.dump().substr(0, 50);
    }
  }
  for (const char* key : {"name", "deleted", "hashes"}) {
    for (const Json& value : values) {
      Json json = whole;
      json["parts"][0][key] = value;
      const bool empty = std::string(key) == "deleted" && value == Json::array();
      EXPECT_EQ(forge(json), empty) << key << " " << value.dump().substr(0, 50);
    }
  }
}

TEST_F(IndexFolder, RefusesForgedPassages) {
  const std::string file = path_ + "/1/passages.safetensors";
  const SafeTensors whole(file);
  const auto bytes = static_cast<int64_t>(read_file(path_ + "/1/passages.jsonl").size());
  const auto refused = [&](const char* name, const Tensor& value) {
    std::map<std::string, Tensor> tensors;
    for (const StoredTensor& each : whole.stored()) tensors[each.name] = whole.tensor(each.name);
    tensors[name] = value;
    const std::string other = folder_ / "forged.safetensors";
    write_safetensors(other, tensors);
    expect_error(ErrorKind::BadFile, {other},
                 [&] { PassageTable(SafeTensors(other), other, bytes); });
  };
  const auto changed = [&](const char* name, int64_t at, int32_t value) {
    const Tensor x = copy(whole.tensor(name));
    x.data_as<int32_t>()[at] = value;
    return x;
  };
  refused("starts", zeros({6}, DType::i64));
  refused("starts", zeros({5}, DType::i64));
  refused("hashes", zeros({4}, DType::i64));
  refused("hashes", zeros({5}));
  for (const int32_t value : {-1, 1, INT32_MAX}) refused("files", changed("files", 2, value));
  for (const int32_t value : {-1, 5, INT32_MAX}) refused("rows", changed("rows", 4, value));
  for (const int32_t value : {-1, 1, INT32_MAX}) refused("fields", changed("fields", 0, value));
  refused("positions", zeros({6}, DType::i32));
  for (const char* text : {"[]\n", "{}\n", "x", "{\"file\": 1, \"date\": \"\"}\n"}) {
    const Tensor names = empty({static_cast<int64_t>(strlen(text))}, DType::u8);
    std::copy_n(text, names.size(), names.data_as<char>());
    refused("names", names);
  }
}

// What a process leaves that is killed while it changes an index.
TEST_F(IndexFolder, AnUnfinishedChangeHasNoEffect) {
  const std::string before = read_file(path_ + "/index.json");
  const auto part = [] { return part_of({{"b.txt", 1, 1, "text"}}, random_vectors(1, 8)); };
  {
    IndexWriter writer(path_);
    EXPECT_EQ(writer.write(part()).name, "2");
    expect_error(ErrorKind::Failed, {"in use"}, [&] { IndexWriter other(path_); });
  }
  EXPECT_FALSE(is_folder(path_ + "/2"));
  EXPECT_EQ(read_file(path_ + "/index.json"), before);
  std::filesystem::copy(path_ + "/1", path_ + "/2", std::filesystem::copy_options::recursive);
  make_directories(path_ + "/.saving-3-99999999");
  open();
  IndexWriter writer(path_);
  const PartEntry entry = writer.write(part());
  EXPECT_EQ(entry.name, "3");
  const IndexContents old(path_);
  IndexDescription description = old.description();
  description.parts.push_back(entry);
  writer.commit(description);
  EXPECT_FALSE(is_folder(path_ + "/2"));
  EXPECT_EQ(IndexContents(path_).passages(), 6);
  EXPECT_EQ(old.passage(0).file, "a.txt");  // whoever has opened the index keeps it
  const std::string unfinished = folder_ / "unfinished";
  make_directories(unfinished + "/1");
  write_file_atomically(unfinished + "/.lock", "1");
  EXPECT_FALSE(is_index(unfinished));
}

TEST(IndexWriter, LeavesNothingOfANewIndexWithoutACommit) {
  const TemporaryFolder folder;
  const std::string path = folder / "new";
  {
    IndexWriter(path).write(part_of({{"b.txt", 1, 1, "text"}}, random_vectors(1, 8)));
  }
  EXPECT_FALSE(is_folder(path));
}

TEST(IndexContents, AreInTheOrderOfFilesWhateverTheParts) {
  const TemporaryFolder folder;
  const std::string path = folder / "index";
  IndexSettings settings = {"/texts", "/model", "0123", 8, Similarity::dot};
  settings.passage_tokens = 10;
  IndexWriter writer(path);
  const auto write = [&](const std::vector<IndexedPassage>& passages) {
    return writer.write(part_of(passages, random_vectors(std::ssize(passages), 8)));
  };
  PartEntry one = write({{"b", 1, 1, "x  y"}, {"b", 3, 3, "z", "", 1}, {"d", 1, 1, "gone"}});
  const PartEntry other = write({{"a", 1, 1, "w"}, {"c", 1, 1, "x y"}, {"c", 2, 2, "gone", "", 1}}),
                  rest = write({{"c", 3, 3, "v", "", 3}, {"c", 2, 2, "w", "", 2}});
  one.deleted = {"d"};
  writer.commit({settings, {one, other, rest}});
  const IndexContents index(path);
  std::vector<std::string> texts, found;
  std::vector<int32_t> numbers;
  for (int64_t i = 0; i < index.passages(); ++i) texts.push_back(index.passage(i).text);
  EXPECT_EQ(texts, (std::vector<std::string>{"w", "x  y", "z", "x y", "gone", "w", "v"}));
  for (int64_t p = 0; p < index.parts(); ++p)
    for (const int32_t number : index.all().of(p))
      if (number >= 0) numbers.push_back(number);
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, (std::vector<int32_t>{0, 1, 2, 4, 6}));  // the first of equal texts
  EXPECT_EQ(index.all().count, 5);
  const auto in_c = index.where(Conditions({"file=c"}));
  EXPECT_EQ(in_c.count, 4);
  EXPECT_EQ(in_c.of(1)[1], 3);
}

TEST_F(IndexFolder, ReplacesOnlyAnIndex) {
  EXPECT_TRUE(is_index(path_));
  EXPECT_FALSE(is_index(folder_ / "none"));
  make_directories(folder_ / "mine");
  EXPECT_FALSE(is_index(folder_ / "mine"));
  write_file_atomically(folder_ / "mine/photo", "x");
  for (const char* name : {"mine", "mine/photo"})
    expect_error(ErrorKind::InvalidArgument, {name, "not a search index"},
                 [&] { is_index(folder_ / name); });
}

TEST(TextFiles, AreListedInOrderWithoutBinaryFiles) {
  const TemporaryFolder folder;
  make_directories(folder / "b/.git");
  for (const char* name : {"c.md", "b/a.txt", "b/.git/x", ".hidden"})
    write_file_atomically(folder / name, "text");
  write_file_atomically(folder / "data", std::string("a\0b", 3));
  ASSERT_EQ(symlink("..", (folder / "b/up").c_str()), 0);
  const FoundTexts found = text_files(folder.path() + "/");
  EXPECT_EQ(found.files, (std::vector<std::string>{"b/a.txt", "c.md"}));
  EXPECT_EQ(found.skipped, std::vector<std::string>{"data"});
  EXPECT_TRUE(found.links_out.empty());
  write_file_atomically(folder / "bad", "a\xff");
  EXPECT_EQ(read_text_file(folder.path(), "bad"), "a\xEF\xBF\xBD");
  write_file_atomically(folder / "marked",
                        "\xEF\xBB\xBF"
                        "a");
  EXPECT_EQ(read_text_file(folder.path(), "marked"), "a");
  expect_error(ErrorKind::BadFile, {"none"}, [&] { text_files(folder / "none"); });
}

TEST(WordVectors, JoinAdjacentTokens) {
  const std::string text = "fox-es, hears";
  const std::vector<SpanVector> tokens = {{0, 0, {9, 9}},  {0, 3, {1, 0}}, {3, 4, {9, 9}},
                                          {4, 6, {0, 1}},  {6, 7, {9, 9}}, {7, 12, {3, 0}},
                                          {12, 13, {1, 4}}};
  const auto words = words_of(text, tokens);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(text.substr(words[2].begin, words[2].end - words[2].begin), "hears");
  EXPECT_FLOAT_EQ(words[2].vector[0], std::sqrt(0.5f));
  const auto pairs = best_matches({words[2], words[1]}, words);
  EXPECT_EQ(pairs[0].passage, 2u);
  EXPECT_EQ(pairs[1].passage, 1u);
  EXPECT_FLOAT_EQ(pairs[1].similarity, 1);
  EXPECT_TRUE(best_matches(words, {}).empty());
}

}  // namespace
}  // namespace fovea::infer
