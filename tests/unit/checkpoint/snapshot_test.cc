#include "checkpoint/snapshot.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "base/json.h"
#include "support/expect_error.h"
#include "support/faulty_calls.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

// Returns the state of a run. The tensors and the state depend on the step, so that a mixture of
// two snapshots is detected.
SnapshotContents contents_at(int64_t step) {
  SnapshotContents contents;
  contents.tensors["weights"] = full({5000}, static_cast<double>(step));
  contents.tensors["moments"] = full({3}, static_cast<double>(step) + 0.5);
  contents.state = {{"step", step}, {"loss", 1.5}};
  contents.others = {{"config.json", {"{\"step\": ", "1}\n"}}};
  return contents;
}

void expect_whole(const Snapshot& snapshot, int64_t step) {
  EXPECT_EQ(snapshot.step, step);
  EXPECT_EQ(snapshot.state["step"], step);
  EXPECT_EQ(to_floats(snapshot.tensors.tensor("weights")),
            std::vector<float>(5000, static_cast<float>(step)));
  EXPECT_EQ(read_file(snapshot.path + "/config.json"), "{\"step\": 1}\n");
}

class Snapshots : public testing::Test {
 protected:
  std::string path(int64_t step, const std::string& name) const {
    return snapshot_path(out_, step) + "/" + name;
  }
  std::optional<Snapshot> latest() {
    said_.clear();
    return load_latest_snapshot(out_, [this](const std::string& text) { said_.push_back(text); });
  }
  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(out_)) {
      const std::string name = entry.path().filename().string();
      if (name[0] == '.' && name != ".lock") names.push_back(name);
    }
    return names;
  }

  TemporaryFolder folder_;
  std::string out_ = folder_ / "out";
  std::vector<std::string> said_;
};

TEST_F(Snapshots, LoadTheNewest) {
  EXPECT_FALSE(latest());
  SnapshotFolder writer(out_);
  EXPECT_FALSE(latest());
  for (const int64_t step : {0, 9, 10, 100}) writer.save(step, contents_at(step));
  make_directories(out_ + "/checkpoint-0200");
  make_directories(out_ + "/checkpoint-200-old");
  make_directories(out_ + "/checkpoint-");
  make_directories(out_ + "/best");
  EXPECT_EQ(find_snapshots(out_), (Steps{100, 10, 9, 0}));
  expect_whole(*latest(), 100);
  expect_whole(load_snapshot(out_, 9), 9);
  EXPECT_TRUE(said_.empty());
}

TEST_F(Snapshots, ListTheirFilesInTheManifest) {
  SnapshotFolder(out_).save(7, contents_at(7));
  const nlohmann::json manifest = read_json(path(7, "manifest.json"));
  EXPECT_EQ(manifest["version"], 1);
  ASSERT_EQ(manifest["files"].size(), 3u);
  EXPECT_EQ(manifest["files"]["config.json"],
            (nlohmann::json{{"bytes", 12}, {"xxh3", hash_text(hash_bytes("{\"step\": 1}\n"))}}));
  EXPECT_EQ(read_file(path(7, "state.json")), "{\n  \"step\": 7,\n  \"loss\": 1.5\n}\n");
}

TEST_F(Snapshots, ReplaceOneOfTheSameStep) {
  SnapshotFolder writer(out_);
  writer.save(7, contents_at(3));
  const Snapshot old = load_snapshot(out_, 7);
  writer.save(7, contents_at(7));
  expect_whole(*latest(), 7);
  EXPECT_TRUE(hidden().empty());
  EXPECT_EQ(to_floats(old.tensors.tensor("moments")), std::vector<float>(3, 3.5f));  // still mapped
}

TEST_F(Snapshots, KeepTheEarlierOneOnAnyFailure) {
  SnapshotFolder writer(out_);
  writer.save(1, contents_at(1));
  int calls = 0;
  {
    const FaultyCalls counting(0);
    writer.save(2, contents_at(2));
    calls = counting.calls();
  }
  ASSERT_GT(calls, 20);
  for (const bool replacing : {false, true}) {
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE(n);
      remove_tree(snapshot_path(out_, 2));
      if (replacing) writer.save(2, contents_at(2));
      std::string failed;
      {
        const FaultyCalls faulty(n, n % 2 == 0 ? ENOSPC : EIO);
        expect_error(
            ErrorKind::Failed,
            {snapshot_path(out_, 2) + ": cannot be written (",
             std::strerror(n % 2 == 0 ? ENOSPC : EIO), "expected a writable location with 20"},
            [&] { writer.save(2, contents_at(2)); });
        failed = faulty.failed();
      }
      // After the rename, the new snapshot is complete; only syncing the folder failed.
      const bool renamed = n > calls - 3;
      EXPECT_EQ(find_snapshots(out_), renamed || replacing ? (Steps{2, 1}) : Steps{1}) << failed;
      expect_whole(*latest(), renamed || replacing ? 2 : 1);
      expect_whole(load_snapshot(out_, 1), 1);
      EXPECT_TRUE(hidden().empty()) << failed;
      EXPECT_TRUE(said_.empty());
    }
  }
}

TEST_F(Snapshots, SyncFilesBeforeRenaming) {
  SnapshotFolder writer(out_);
  static std::vector<std::string> trace;
  static const SavedCalls* real;
  const SavedCalls saved;
  real = &saved;
  trace.clear();
  system_calls().open = [](const char* path, int flags, mode_t mode) {
    const int file = real->real().open(path, flags, mode);
    trace.push_back("open " + fs::path(path).filename().string());
    return file;
  };
  system_calls().fsync = [](int file) {
    trace.emplace_back("fsync");
    return real->real().fsync(file);
  };
  system_calls().rename = [](const char* from, const char* to) {
    trace.emplace_back("rename");
    return real->real().rename(from, to);
  };
  writer.save(2, contents_at(2));
  const std::string temporary = "open .saving-checkpoint-2-" + std::to_string(getpid());
  EXPECT_EQ(trace,
            (std::vector<std::string>{"open state.safetensors", "fsync", "open state.json", "fsync",
                                      "open config.json", "fsync", "open manifest.json", "fsync",
                                      temporary, "fsync", "rename", "open out", "fsync"}));
}

TEST_F(Snapshots, RefuseDamagedFilesAndLoadTheOlderSnapshot) {
  SnapshotFolder writer(out_);
  writer.save(1, contents_at(1));
  writer.save(2, contents_at(2));
  for (const std::string name :
       {"state.safetensors", "state.json", "manifest.json", "config.json"}) {
    const std::string whole = read_file(path(2, name));
    const auto torn = [&](const std::string& bytes, const std::string& how) {
      SCOPED_TRACE(name + " " + how);
      write_file_atomically(path(2, name), bytes);
      const auto snapshot = latest();
      ASSERT_TRUE(snapshot);
      expect_whole(*snapshot, 1);
      ASSERT_EQ(said_.size(), 1u);
      EXPECT_NE(said_[0].find("checkpoint-2/" + (name == "manifest.json" ? "" : name)),
                std::string::npos)
          << said_[0];
      EXPECT_NE(said_[0].find("checkpoint-2 is skipped"), std::string::npos) << said_[0];
    };
    for (size_t size = 0; size < whole.size(); size += 4096) torn(whole.substr(0, size), "cut");
    torn(whole.substr(0, whole.size() - 2), "cut at the end");
    torn(whole + " x", "grown");
    // Flips a bit in every 1021st byte, or in every 7th of a small file. White space in a manifest
    // has no meaning.
    for (size_t byte = 0; byte < whole.size(); byte += whole.size() > 4096 ? 1021 : 7) {
      if (name == "manifest.json" && std::isspace(static_cast<unsigned char>(whole[byte])))
        continue;
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 1 << (byte % 8));
      torn(flipped, "flipped at " + std::to_string(byte));
    }
    for (size_t sector = 0; sector < whole.size(); sector += 4096) {
      std::string zeroed = whole;
      std::fill_n(zeroed.begin() + static_cast<long>(sector),
                  std::min<size_t>(512, whole.size() - sector), '\0');
      if (zeroed != whole) torn(zeroed, "zeroed");
    }
    fs::remove(path(2, name));
    expect_whole(*latest(), 1);
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_NE(said_[0].find(name + ": is missing"), std::string::npos) << said_[0];
    write_file_atomically(path(2, name), whole);
  }
  expect_whole(*latest(), 2);
  EXPECT_TRUE(said_.empty());
}

TEST_F(Snapshots, RefuseToStartOverDamagedOnes) {
  SnapshotFolder writer(out_);
  writer.save(1, contents_at(1));
  writer.save(2, contents_at(2));
  write_file_atomically(path(1, "state.json"), "{}");
  fs::remove(path(2, "manifest.json"));
  expect_error(
      ErrorKind::BadFile,
      {"out: all 2 snapshots are damaged; expected an intact one (remove them to start again)"},
      [&] { latest(); });
  EXPECT_EQ(said_.size(), 2u);
}

TEST_F(Snapshots, CheckTheManifest) {
  SnapshotFolder writer(out_);
  writer.save(1, contents_at(1));
  const nlohmann::json good = read_json(path(1, "manifest.json"));
  const auto refused = [&](const nlohmann::json& manifest, const std::string& text) {
    SCOPED_TRACE(text);
    write_file_atomically(path(1, "manifest.json"), pretty(manifest));
    expect_error(ErrorKind::BadFile, {text}, [&] { load_snapshot(out_, 1); });
  };
  nlohmann::json bad = good;
  bad["version"] = 2;
  refused(bad, "manifest.json: version is 2");
  bad = good;
  bad["files"].erase("state.json");
  refused(bad, "files is incomplete; expected state.safetensors and state.json");
  bad = good;
  bad["files"]["../x"] = good["files"]["state.json"];
  refused(bad, "files: the name \"../x\" is not a plain file name");
  bad = good;
  bad["files"]["state.json"]["bytes"] = -1;
  refused(bad, "bytes is -1; expected an integer of at least 0");
  refused(nlohmann::json::array(), "is an array of 0 elements; expected an object");
}

TEST_F(Snapshots, PruneAllButTheNewestIntactOnes) {
  SnapshotFolder writer(out_);
  for (const int64_t step : {1, 2, 3, 4, 5}) writer.save(step, contents_at(step));
  write_file_atomically(path(4, "state.json"), "{}");
  writer.prune(2);
  EXPECT_EQ(find_snapshots(out_), (Steps{5, 4, 3}));  // 4 is damaged and is not counted
  writer.prune(1);
  EXPECT_EQ(find_snapshots(out_), (Steps{5}));
  writer.save(6, contents_at(6));
  writer.save(7, contents_at(7));
  fs::remove(path(7, "manifest.json"));
  fs::resize_file(path(6, "state.safetensors"), 100);
  writer.prune(1);
  EXPECT_EQ(find_snapshots(out_), (Steps{7, 6, 5}));  // 5 is the only intact one
  expect_whole(*latest(), 5);
  EXPECT_TRUE(hidden().empty());
  expect_error(ErrorKind::InvalidArgument, {"prune: 0 snapshots to keep"},
               [&] { writer.prune(0); });
}

TEST_F(Snapshots, CheckTheFreeSpaceFirst) {
  SnapshotFolder writer(out_);
  writer.save(1, contents_at(1));
  const SavedCalls saved;
  system_calls().free_space = [](const char*, uint64_t* bytes) {
    *bytes = 20000;
    return 0;
  };
  system_calls().mkdir = [](const char*, mode_t) {
    ADD_FAILURE() << "started to write without enough space";
    return -1;
  };
  expect_error(ErrorKind::Failed,
               {"checkpoint-2: not enough space on the disk (20000 bytes free); expected 22"},
               [&] { writer.save(2, contents_at(2)); });
  expect_whole(*latest(), 1);
}

// Kills a child process while it writes, after a different time in each round.
TEST_F(Snapshots, SurviveAKilledWriter) {
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      SnapshotFolder writer(out_);
      const auto before = load_latest_snapshot(out_, [](const std::string&) { _exit(3); });
      for (int64_t step = before ? before->step + 1 : 0;; ++step) {
        writer.save(step, contents_at(step));
        writer.prune(2);
      }
    }
    usleep(static_cast<useconds_t>(5000 + 1777 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    if (const auto snapshot = latest()) expect_whole(*snapshot, snapshot->step);
    EXPECT_TRUE(said_.empty());
  }
  EXPECT_GT(find_snapshots(out_).at(0), 0);
  SnapshotFolder{out_};
  EXPECT_TRUE(hidden().empty());
}

TEST_F(Snapshots, RefuseASecondWriter) {
  const SnapshotFolder writer(out_);
  make_directories(out_ + "/.saving-checkpoint-3-1");
  expect_error(ErrorKind::Failed, {"in use by process " + std::to_string(getpid())},
               [&] { SnapshotFolder{out_}; });
  EXPECT_EQ(hidden().size(), 1u);  // the files of the first writer were not touched
}

}  // namespace
}  // namespace fovea::model
