#include "tuning/file_store.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tuning/random_id.h"

namespace fovea::tuning {
namespace {

class FileStoreTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const std::string files_ = folder_ / "files";
};

TEST_F(FileStoreTest, KeepsFilesUnderGeneratedNames) {
  std::string first;
  {
    FileStore store(files_);
    first = store.add("../../etc/passwd", "{}\n").id;
    EXPECT_TRUE(is_id(first, "file-")) << first;
    EXPECT_NE(store.add("same.jsonl", "1").id, store.add("same.jsonl", "2").id);
  }
  const FileStore store(files_);
  ASSERT_EQ(store.list().size(), 3u);
  EXPECT_EQ(store.list()[0].id, first) << "in the order of uploads";
  EXPECT_EQ(store.list()[0].label, "../../etc/passwd") << "only a label";
  EXPECT_EQ(store.list()[0].bytes, 3u);
  EXPECT_EQ(store.content(first), "{}\n");
  EXPECT_EQ(list_files(folder_.path()), std::vector<std::string>());
  EXPECT_EQ(list_files(files_).size(), 6u);
  for (const std::string& name : list_files(files_)) EXPECT_EQ(name.substr(0, 5), "file-");
}

TEST_F(FileStoreTest, FindsOnlyItsFiles) {
  FileStore store(files_);
  const std::string id = store.add("a.jsonl", "1").id;
  EXPECT_TRUE(store.find(id));
  for (const std::string& other : {std::string(), id + ".jsonl", "../files/" + id, id.substr(5)})
    EXPECT_FALSE(store.find(other)) << other;
  store.remove("../files/" + id);
  EXPECT_TRUE(store.find(id));
  store.remove(id);
  EXPECT_FALSE(store.find(id));
  EXPECT_EQ(list_files(files_), std::vector<std::string>());
}

TEST_F(FileStoreTest, RefusesLabelsAndEmptyFiles) {
  FileStore store(files_);
  for (const std::string& label :
       {std::string(), std::string("a\nb"), std::string("a\0b", 3), std::string("\xff"),
        std::string("\x1b[2J"), std::string(256, 'a')})
    expect_error(ErrorKind::InvalidArgument, {"file: has no valid name"},
                 [&] { store.add(label, "1"); });
  expect_error(ErrorKind::InvalidArgument, {"file: is empty"}, [&] { store.add("a", ""); });
  EXPECT_EQ(list_files(files_), std::vector<std::string>());
  EXPECT_EQ(store.add("Größe \"1\".jsonl", "1").label, "Größe \"1\".jsonl");
}

TEST_F(FileStoreTest, RemovesContentsWithoutARecord) {
  std::string id;
  {
    FileStore store(files_);
    id = store.add("a.jsonl", "1").id;
    store.add("b.jsonl", "2");
  }
  remove_tree(files_ + "/" + id + ".json");
  write_file_atomically(files_ + "/notes.txt", "of the operator");
  const FileStore store(files_);
  EXPECT_FALSE(store.find(id));
  EXPECT_FALSE(is_file(files_ + "/" + id + ".jsonl"));
  EXPECT_TRUE(is_file(files_ + "/notes.txt"));
  EXPECT_EQ(store.list().size(), 1u);
}

TEST_F(FileStoreTest, ReportsADamagedRecord) {
  std::string id;
  {
    FileStore store(files_);
    id = store.add("a.jsonl", "1").id;
  }
  write_file_atomically(files_ + "/" + id + ".json", "{\"label\": 1}");
  expect_error(ErrorKind::BadFile, {id + ".json"}, [&] { FileStore store(files_); });
}

}  // namespace
}  // namespace fovea::tuning
