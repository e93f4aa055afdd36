#include <cmath>

#include "base/hash.h"
#include "base/json.h"
#include "fovea/core/random.h"
#include "search/index_files.h"
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
    const auto found = graph.nearest({x, 20}, 3);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].number, i);
    EXPECT_NEAR(found[0].similarity, 1, 1e-6);
    EXPECT_GT(found[1].similarity, found[2].similarity);
    EXPECT_EQ(graph.vector(i), std::vector<float>(x, x + 20));
  }
  EXPECT_EQ(graph.nearest({vectors.data_as<float>(), 20}, 1000).size(), 500u);
  EXPECT_EQ(graph.bytes(), VectorGraph(vectors, Similarity::cosine).bytes());
}

TEST(VectorGraph, SupportsThreeSimilarities) {
  const Tensor vectors = tensor_of({3, 0, 1, 1}, {2, 2});
  const float query[] = {1, 1};
  EXPECT_NEAR(VectorGraph(vectors, Similarity::dot).nearest(query, 1)[0].similarity, 3, 1e-6);
  const auto nearest = VectorGraph(vectors, Similarity::euclidean).nearest(query, 2);
  EXPECT_EQ(nearest[0].number, 1);
  EXPECT_NEAR(nearest[1].similarity, -std::sqrt(5.0), 1e-6);
  expect_error(ErrorKind::Unsupported, {"manhattan"},
               [&] { VectorGraph(vectors, Similarity::manhattan); });
}

class IndexFolder : public testing::Test {
 protected:
  IndexFolder() {
    std::vector<IndexedPassage> passages;
    for (int i = 0; i < 5; ++i) passages.push_back({"a.txt", i + 1, i + 2, "passage \"ä\"\n"});
    std::vector<std::string_view> texts;
    for (const IndexedPassage& passage : passages) texts.push_back(passage.text);
    const IndexSettings settings = {"/texts", "/model", "0123", 8, Similarity::dot};
    write_index(path_, {settings, passages, VectorGraph(random_vectors(5, 8), Similarity::dot),
                        WordIndex(texts)});
  }
  void refused(const std::string& name) {
    expect_error(ErrorKind::BadFile, {path_ + "/" + name}, [&] { read_index(path_); });
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "index";
};

TEST_F(IndexFolder, RoundTrips) {
  const IndexFiles index = read_index(path_);
  EXPECT_EQ(index.settings.folder, "/texts");
  EXPECT_EQ(index.settings.fingerprint, "0123");
  EXPECT_EQ(index.settings.similarity, Similarity::dot);
  ASSERT_EQ(index.passages.size(), 5u);
  EXPECT_EQ(index.passages[4].text, "passage \"ä\"\n");
  EXPECT_EQ(index.passages[4].last_line, 6);
  const Tensor vectors = random_vectors(5, 8);
  EXPECT_EQ(index.graph().nearest({vectors.data_as<float>() + 16, 8}, 1)[0].number, 2);
}

TEST_F(IndexFolder, DetectsEveryFlippedByte) {
  for (const char* name : {"graph.hnsw", "passages.jsonl", "words.safetensors", "index.json"}) {
    const std::string file = path_ + "/" + name, whole = read_file(file);
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 13) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      write_file_atomically(file, bytes);
      try {
        static_cast<void>(read_index(path_));
        // White space in JSON has no meaning.
        EXPECT_TRUE(whole[at] == ' ' || whole[at] == '\n') << name << " at " << at;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
      }
    }
    write_file_atomically(file, whole.substr(0, whole.size() / 2));
    refused(name);
    remove_tree(file);
    expect_error(ErrorKind::BadFile, {path_}, [&] { read_index(path_); });
    write_file_atomically(file, whole);
  }
}

// Forges values and the hashes that protect them.
TEST_F(IndexFolder, RefusesOrSurvivesForgedFiles) {
  using Json = nlohmann::json;
  const Json whole = read_json(path_ + "/index.json");
  const std::string passages = read_file(path_ + "/passages.jsonl");
  const auto forge = [&](Json json, const std::string& with) {
    json.erase("hash");
    json["hash_of_passages"] = hash_text(hash_bytes(with));
    json["hash"] = hash_text(hash_bytes(json.dump()));
    write_file_atomically(path_ + "/index.json", json.dump());
    write_file_atomically(path_ + "/passages.jsonl", with);
    try {
      const IndexFiles index = read_index(path_);
      EXPECT_EQ(index.settings.width, 8);
      EXPECT_EQ(index.passages.size(), 5u);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return false;
    }
  };
  ASSERT_TRUE(forge(whole, passages));
  for (const auto& [key, old] : whole.items()) {
    for (const Json& value :
         {Json(), Json(-1), Json(0), Json(7), Json(9), Json(INT64_MAX), Json(1e300), Json("\n"),
          Json(std::string(100'000, 'x')), Json::array(), Json::object()}) {
      Json json = whole;
      json[key] = value;
      const bool free_text =
          (key == "folder" || key == "model" || key == "fingerprint") && value.is_string();
      const bool overwritten = key.starts_with("hash_of_p") || key == "hash" || key == "passages";
      EXPECT_EQ(forge(json, passages), free_text || overwritten)
          << key << " " << value.dump().substr(0, 50);
    }
  }
  const std::string line = passages.substr(0, passages.find('\n') + 1);
  for (const std::string& other :
       {passages + line, passages.substr(line.size()), std::string(), std::string("[]\n"),
        passages.substr(line.size()) +
            R"({"file": "a", "line": 9223372036854775807, "last_line": 1, "text": ""})",
        passages.substr(line.size()) + R"({"file": "a", "line": 0, "last_line": 1, "text": ""})"})
    EXPECT_FALSE(forge(whole, other)) << other.substr(0, 100);
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
