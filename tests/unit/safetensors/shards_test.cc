// Model folders with one file, with shards and an untrusted index, or with unsupported files.

#include <sys/stat.h>

#include <filesystem>

#include "base/json.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class Shards : public testing::Test {
 protected:
  Shards() {
    write_safetensors(folder_ / kFirst, {{"a", tensor_of({1}, {1})}, {"c", tensor_of({3}, {1})}});
    write_safetensors(folder_ / kSecond, {{"b", tensor_of({2}, {1})}});
    index({{"a", kFirst}, {"b", kSecond}, {"c", kFirst}});
  }

  void index(const nlohmann::json& weight_map) {
    write_file_atomically(
        folder_ / "model.safetensors.index.json",
        pretty(nlohmann::json{{"metadata", {{"total_size", 12}}}, {"weight_map", weight_map}}));
  }
  SafeTensors open() const { return SafeTensors::open_model(folder_.path()); }
  void refused(std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::BadFile, parts, [&] { open(); });
  }

  static constexpr const char* kFirst = "model-00001-of-00002.safetensors";
  static constexpr const char* kSecond = "model-00002-of-00002.safetensors";
  TemporaryFolder folder_;
};

TEST_F(Shards, AreReadAsOneFile) {
  const SafeTensors model = open();
  ASSERT_EQ(model.stored().size(), 3u);
  EXPECT_EQ(model.files().size(), 2u);
  EXPECT_EQ(to_floats(model.tensor("a")), std::vector<float>{1});
  EXPECT_EQ(to_floats(model.tensor("b")), std::vector<float>{2});
  EXPECT_EQ(to_floats(model.tensor("c")), std::vector<float>{3});
  EXPECT_EQ(model.files()[model.find("b")->file]->path(), folder_ / kSecond);
  EXPECT_EQ(SafeTensors::open_model(folder_ / "model.safetensors.index.json").stored().size(), 3u);
}

TEST_F(Shards, AreIgnoredIfASingleFileExists) {
  write_safetensors(folder_ / "model.safetensors", {{"w", zeros({1})}});
  EXPECT_EQ(open().stored().size(), 1u);
}

TEST_F(Shards, OnlyPlainNamesAreOpened) {
  for (const char* name :
       {"../x.safetensors", "/etc/passwd", "a/../../x.safetensors", "sub/x.safetensors", "..", ".",
        "", ".hidden.safetensors", "model.bin", "a\\b.safetensors"}) {
    SCOPED_TRACE(name);
    index({{"a", name}});
    refused({"model.safetensors.index.json: weight_map places a in \"",
             "expected the name of a .safetensors file in the same folder"});
  }
  for (const nlohmann::json& name :
       {nlohmann::json(1), nlohmann::json(nullptr), nlohmann::json::array()}) {
    index({{"a", name}});
    refused({"weight_map places a in "});
  }
}

TEST_F(Shards, OnlyRegularFilesAreOpened) {
  const auto shard_is = [&](const std::string& what) {
    SCOPED_TRACE(what);
    refused({kSecond, what});
    fs::remove_all(folder_ / kSecond);
  };
  fs::remove(folder_ / kSecond);
  shard_is("is missing");
  fs::create_symlink("/etc/hostname", folder_ / kSecond);
  shard_is("is a symbolic link");
  fs::create_symlink(kFirst, folder_ / kSecond);
  shard_is("is a symbolic link");
  fs::create_symlink("../../blobs/../secret", folder_ / kSecond);
  shard_is("is a symbolic link");
  fs::create_directory(folder_ / kSecond);
  shard_is("is a folder");
  ASSERT_EQ(mkfifo((folder_ / kSecond).c_str(), 0600), 0);
  shard_is("is a FIFO");
  write_safetensors(folder_ / "other", {{"b", zeros({1})}});
  fs::create_hard_link(folder_ / "other", folder_ / kSecond);
  shard_is("has 2 names (hard links)");
}

// The cache contains models--ORG--NAME/{blobs/HASH, snapshots/COMMIT/NAME -> ../../blobs/HASH}.
TEST_F(Shards, LinksOfTheHuggingFaceCacheAreFollowed) {
  const std::string snapshot = folder_ / "snapshots/0123";
  make_directories(snapshot);
  make_directories(folder_ / "blobs");
  fs::rename(folder_ / kFirst, folder_ / "blobs/f1");
  fs::rename(folder_ / kSecond, folder_ / "blobs/f2");
  fs::rename(folder_ / "model.safetensors.index.json", folder_ / "blobs/f3");
  fs::create_symlink("../../blobs/f1", snapshot + "/" + kFirst);
  fs::create_symlink("../../blobs/f2", snapshot + "/" + kSecond);
  fs::create_symlink("../../blobs/f3", snapshot + "/model.safetensors.index.json");
  EXPECT_EQ(to_floats(SafeTensors::open_model(snapshot).tensor("b")), std::vector<float>{2});
  // A blob that is itself a link is refused.
  fs::remove(folder_ / "blobs/f2");
  fs::create_symlink("/etc/hostname", folder_ / "blobs/f2");
  expect_error(ErrorKind::BadFile, {"blobs/f2: is a symbolic link"},
               [&] { SafeTensors::open_model(snapshot); });
}

TEST_F(Shards, MustAgreeWithTheIndex) {
  index({{"a", kFirst}, {"b", kFirst}, {"c", kFirst}});
  refused({"index.json: 1 tensors are in weight_map but in no shard (b)"});
  index({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}});
  refused({"index.json: 2 tensors are in a different shard than in weight_map (c, b)"});
  index({{"a", kFirst}, {"b", kSecond}});
  refused({"index.json: 1 tensors are in a shard but not in weight_map (c)"});
  index({{"a", kFirst}, {"b", kSecond}, {"c", kFirst}, {"d", kFirst}});
  refused({"index.json: 1 tensors are in weight_map but in no shard (d)"});
  write_safetensors(folder_ / kSecond, {{"b", zeros({1})}, {"a", zeros({1})}});
  index({{"a", kFirst}, {"b", kSecond}, {"c", kFirst}});
  refused({"in a different shard than in weight_map (a)"});
}

TEST_F(Shards, CheckTheIndex) {
  const auto text = [&](const std::string& json) {
    write_file_atomically(folder_ / "model.safetensors.index.json", json);
  };
  for (const char* json : {"{}", "[]", "1", "{\"weight_map\": []}", "{\"weight_map\": null}"}) {
    SCOPED_TRACE(json);
    text(json);
    refused({"weight_map is missing; expected an object"});
  }
  text("{\"weight_map\": {\"a\": \"x.safetensors\", \"a\": \"y.safetensors\"}}");
  refused({"duplicate key \"a\""});
  text("{\"weight_map\": {");
  refused({"model.safetensors.index.json: "});
}

TEST(ModelFolder, RefusesPickleFilesWithoutOpeningThem) {
  const TemporaryFolder folder;
  expect_error(ErrorKind::BadFile,
               {"contains no model; expected model.safetensors or model.safetensors.index.json"},
               [&] { SafeTensors::open_model(folder.path()); });
  expect_error(ErrorKind::BadFile, {"none: is missing"},
               [&] { SafeTensors::open_model(folder / "none"); });
  for (const std::string name : {"m.bin", "m.pt", "m.pkl", "m.pth", "m.h5", "m.ckpt"}) {
    SCOPED_TRACE(name);
    write_file_atomically(folder / name, "\x80\x02");
    // The file is refused by its name and must not be opened.
    const SavedCalls saved;
    system_calls().open = [](const char*, int, mode_t) {
      ADD_FAILURE() << "opened the pickle file";
      return -1;
    };
    const auto refused = [&](const std::string& path) {
      expect_error(
          ErrorKind::Unsupported,
          {name + ": pickle files are not read", "expected model.safetensors (convert with"},
          [&] { SafeTensors::open_model(path); });
    };
    refused(folder / name);
    refused(folder.path());
    fs::remove(folder / name);
  }
}

}  // namespace
}  // namespace fovea
