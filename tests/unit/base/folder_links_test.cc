#include "base/folder_links.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class FolderLinks : public testing::Test {
 protected:
  FolderLinks() {
    fs::create_directories(folder_ / "model/1_Pooling");
    write_file_atomically(folder_ / "secret.json", "{}");
    write_file_atomically(folder_ / "model/own.json", "{}");
  }
  void refused(const std::string& link) {
    expect_error(ErrorKind::BadFile, {link + ": is a symbolic link out of the model's folder"},
                 [&] { refuse_links_out(folder_ / "model"); });
    expect_error(ErrorKind::BadFile, {link}, [&] { refuse_link_out(folder_ / ("model/" + link)); });
    fs::remove(folder_ / ("model/" + link));
  }

  TemporaryFolder folder_;
};

// config.json, the tokenizer's files and model.safetensors could be links to any file.
TEST_F(FolderLinks, ThatLeadOutAreRefused) {
  for (const char* link : {"config.json", "model.safetensors", "1_Pooling/config.json"}) {
    fs::create_symlink(folder_ / "secret.json", folder_ / (std::string("model/") + link));
    refused(link);
  }
  fs::create_symlink("../secret.json", folder_ / "model/tokenizer.json");
  refused("tokenizer.json");
  fs::create_directory_symlink(folder_.path(), folder_ / "model/2_Dense");
  refused("2_Dense");
}

TEST_F(FolderLinks, ThatStayAreFollowed) {
  fs::create_symlink("own.json", folder_ / "model/config.json");
  fs::create_symlink("nowhere", folder_ / "model/dangling");
  fs::create_directory_symlink("model", folder_ / "name");
  refuse_links_out(folder_ / "model");
  refuse_links_out(folder_ / "name");
  refuse_link_out(folder_ / "name/config.json");
  refuse_link_out(folder_ / "none/config.json");
}

TEST_F(FolderLinks, OfTheHuggingFaceCacheStayInTheModelsFolder) {
  for (const char* cache : {"models--a--b", "other"}) {
    const fs::path root = folder_ / cache;
    fs::create_directories(root / "snapshots/c0");
    fs::create_directories(root / "blobs");
    write_file_atomically((root / "blobs/h1").string(), "{}");
    fs::create_symlink("../../blobs/h1", root / "snapshots/c0/config.json");
  }
  refuse_links_out(folder_ / "models--a--b/snapshots/c0");
  expect_error(ErrorKind::BadFile, {"config.json"},
               [&] { refuse_links_out(folder_ / "other/snapshots/c0"); });
  fs::create_symlink(folder_ / "secret.json", folder_ / "models--a--b/snapshots/c0/vocab.json");
  expect_error(ErrorKind::BadFile, {"vocab.json"},
               [&] { refuse_links_out(folder_ / "models--a--b/snapshots/c0"); });
}

}  // namespace
}  // namespace fovea
