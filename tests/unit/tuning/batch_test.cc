#include "tuning/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tuning/batch_store.h"
#include "tuning/file_store.h"

namespace fovea::tuning {
namespace {

using Status = BatchStatus;

TEST(BatchTest, StatesFollowOneAnother) {
  const std::map<Status, std::vector<Status>> next = {
      {Status::validating, {Status::in_progress, Status::cancelling, Status::failed}},
      {Status::in_progress, {Status::finalizing, Status::cancelling, Status::failed}},
      {Status::finalizing, {Status::completed, Status::failed}},
      {Status::cancelling, {Status::failed, Status::cancelled}},
      {Status::completed, {}},
      {Status::failed, {}},
      {Status::cancelled, {}}};
  for (const auto& [from, following] : next) {
    EXPECT_EQ(is_final(from), following.empty());
    for (const auto& [to, ignored] : next)
      EXPECT_EQ(may_become(from, to), std::ranges::count(following, to) > 0)
          << name_of(from) << " " << name_of(to);
  }
}

TEST(BatchTest, IsKeptInAFolder) {
  const TemporaryFolder folder;
  std::string written;
  {
    BatchStore store(folder.path());
    EXPECT_TRUE(list_folders(folder.path()).empty());
    Batch batch;
    batch.endpoint = "/v1/completions";
    batch.input_file = "file-1";
    batch.metadata = {{"b", "1"}};
    Batch& added = store.add(batch);
    EXPECT_EQ(added.id.substr(0, 6), "batch_");
    store.set_status(added, Status::in_progress);
    added.total = 7;
    added.output_file = "file-2";
    added.errors = {{"code", "message", "url", 3}};
    store.save(added);
    EXPECT_EQ(store.add(batch).number, 1);
    written = write_batch(added);
  }
  BatchStore store(folder.path());
  ASSERT_EQ(store.all().size(), 2u);
  const Batch& batch = store.all().at(0);
  EXPECT_EQ(write_batch(batch), written);
  EXPECT_EQ(batch.errors.at(0).line, 3);
  EXPECT_GT(batch.times.at(Status::in_progress), 0);
  EXPECT_EQ(store.find(batch.id), &batch);
  EXPECT_EQ(store.find("batch_1"), nullptr);
  write_file_atomically(store.path(batch, "batch.json"), "{}");
  expect_error(ErrorKind::BadFile, {"batch.json", "is no batch"},
               [&] { BatchStore damaged(folder.path()); });
}

TEST(BatchTest, FilesOfOutputAreMovedOnce) {
  const TemporaryFolder folder;
  FileStore store(folder / "files");
  const std::string id = FileStore::new_id(), from = folder / "out.jsonl";
  write_file_atomically(from, "{}\n");
  store.adopt(id, "b_output.jsonl", "batch_output", from);
  EXPECT_FALSE(is_file(from));
  write_file_atomically(from, "other\n");
  store.adopt(id, "b_output.jsonl", "batch_output", from);
  EXPECT_EQ(store.content(id), "{}\n");
  const FileStore again(folder / "files");
  EXPECT_EQ(again.find(id)->purpose, "batch_output");
  EXPECT_EQ(again.find(id)->bytes, 3u);
}

}  // namespace
}  // namespace fovea::tuning
