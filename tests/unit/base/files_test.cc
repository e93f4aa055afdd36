#include "base/files.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "fovea/core/mapped_file.h"
#include "support/expect_error.h"
#include "support/faulty_calls.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Returns all names below the folder, including hidden ones.
std::vector<std::string> tree(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    names.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

using Names = std::vector<std::string>;

TEST(ReadFile, ReadsEntireFiles) {
  const TemporaryFolder folder;
  for (const size_t size : {0, 1, 4095, 4096, 4097, 100000}) {
    const std::string bytes(size, '\x81');
    write_file_atomically(folder / "f", bytes);
    EXPECT_EQ(read_file(folder / "f"), bytes);
    EXPECT_EQ(read_file(folder / "f", size), bytes);
  }
  EXPECT_FALSE(read_file("/proc/self/status").empty());  // reports a size of zero
}

TEST(ReadFile, SurvivesInterruptionsAndShortReads) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "0123456789");
  const SavedCalls saved;
  static const SavedCalls* real;
  static int count;
  real = &saved;
  count = 0;
  system_calls().read = [](int file, void* data, size_t bytes) -> ssize_t {
    errno = EINTR;
    return ++count % 2 == 1 ? -1 : real->real().read(file, data, std::min<size_t>(bytes, 3));
  };
  EXPECT_EQ(read_file(folder / "f"), "0123456789");
}

TEST(ReadFile, NamesPathAndReason) {
  const TemporaryFolder folder;
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_symlink("loop", folder / "loop");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  write_file_atomically(folder / "f", "0123456789");

  const auto refused = [&](const std::string& path, ErrorKind kind,
                           std::initializer_list<std::string> parts) {
    SCOPED_TRACE(path);
    expect_error(kind, parts, [&] { read_file(path, 9); });
  };
  refused(folder / "none", ErrorKind::BadFile,
          {folder / "none" + ": is missing; expected a regular file"});
  refused(folder / "dangling", ErrorKind::BadFile, {"is missing"});
  refused(folder / "loop", ErrorKind::BadFile,
          {"cannot be opened (Too many levels of symbolic links)"});
  refused(folder / "f/x", ErrorKind::BadFile, {"cannot be opened (Not a directory)"});
  refused(folder.path(), ErrorKind::BadFile,
          {folder.path() + ": is a folder; expected a regular file"});
  refused(folder / "fifo", ErrorKind::BadFile, {"is a FIFO; expected a regular file"});
  refused("/dev/zero", ErrorKind::BadFile, {"/dev/zero: is a device"});
  refused(folder / "f", ErrorKind::OutOfMemory,
          {"f: is too large (10 bytes); expected at most 9 bytes"});
  refused("/proc/self/status", ErrorKind::OutOfMemory, {"is too large", "at most 9 bytes"});
}

TEST(ReadFile, ReportsErrorsOfTheSystem) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "0123456789");
  const SavedCalls saved;
  system_calls().read = [](int, void*, size_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  expect_error(ErrorKind::BadFile, {"f: cannot be read (Input/output error); expected 10 bytes"},
               [&] { read_file(folder / "f"); });
  system_calls().open = [](const char*, int, mode_t) {
    errno = EACCES;
    return -1;
  };
  expect_error(ErrorKind::BadFile, {"f: cannot be opened (Permission denied)"},
               [&] { read_file(folder / "f"); });
  expect_error(ErrorKind::BadFile, {"f: cannot be opened (Permission denied)"},
               [&] { MappedFile(folder / "f"); });
}

TEST(ReadFile, RefusesALargeFileBeforeAllocating) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "sparse", "");
  fs::resize_file(folder / "sparse", uint64_t{1} << 43);
  expect_error(ErrorKind::OutOfMemory, {"is too large (8796093022208 bytes)"},
               [&] { read_file(folder / "sparse"); });
}

TEST(MappedFile, ShowsTheBytes) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "0123456789");
  const MappedFile file(folder / "f", MappedFile::Access::random);
  EXPECT_EQ(file.bytes(), "0123456789");
  EXPECT_EQ(file.path(), folder / "f");
  // A new file of the same name does not change the mapping.
  write_file_atomically(folder / "f", "other");
  EXPECT_EQ(file.bytes(), "0123456789");
  write_file_atomically(folder / "empty", "");
  EXPECT_EQ(MappedFile(folder / "empty").size(), 0u);
}

// Returns the resident bytes of the mapping that begins at `begin`.
size_t resident_from(const char* begin) {
  const std::string maps = read_file("/proc/self/smaps"), key = "\nRss:";
  const size_t at = maps.find(fmt::format("{:x}-", reinterpret_cast<uintptr_t>(begin)));
  return std::stoul(maps.substr(maps.find(key, at) + key.size())) * 1024;
}

TEST(MappedFile, ReleasesBytesThatCanBeReadAgain) {
  const TemporaryFolder folder;
  constexpr size_t kSize = 1 << 20, kPage = 4096, kAround = 64 << 10;
  std::string bytes(kSize, '\0');
  for (size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<char>(i * 7 / 3);
  write_file_atomically(folder / "f", bytes);
  const MappedFile file(folder / "f");
  ASSERT_EQ(file.bytes(), bytes);
  ASSERT_EQ(resident_from(file.data()), kSize);
  constexpr size_t kBegin = 300'000, kReleased = 400'000;
  file.release(file.data() + kBegin, kReleased);
  const size_t gone = kSize - resident_from(file.data());
  EXPECT_GE(gone, kReleased - kPage);
  EXPECT_LE(gone, kReleased + kAround);
  EXPECT_EQ(file.bytes(), bytes);
  file.release(file.data(), kSize);
  EXPECT_EQ(resident_from(file.data()), 0U);
  file.release(file.data() + 5 * kPage + 1, 1);
  file.release(file.data(), 0);
  EXPECT_EQ(file.bytes(), bytes);
}

TEST(MappedFile, IsFoundByAnAddressInIt) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "0123456789");
  const char* inside = nullptr;
  {
    const MappedFile file(folder / "f");
    inside = file.data() + 9;
    ASSERT_NE(mapped_file_at(inside), nullptr);
    EXPECT_EQ(mapped_file_at(inside), file.path());
    EXPECT_EQ(mapped_file_at(inside + 1), nullptr);
    EXPECT_EQ(mapped_file_at(file.data() - 1), nullptr);
  }
  EXPECT_EQ(mapped_file_at(inside), nullptr);
}

TEST(MappedFile, RefusesLinksOnRequest) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "0123456789");
  fs::create_symlink("f", folder / "soft");
  const auto open = [&](const std::string& name) {
    MappedFile(folder / name, MappedFile::Access::random, Links::refuse);
  };
  EXPECT_NO_THROW(open("f"));
  EXPECT_EQ(MappedFile(folder / "soft").size(), 10u);
  expect_error(ErrorKind::BadFile, {"soft: is a symbolic link"}, [&] { open("soft"); });
  fs::create_hard_link(folder / "f", folder / "hard");
  expect_error(ErrorKind::BadFile, {"hard: has 2 names (hard links)"}, [&] { open("hard"); });
}

TEST(WriteFile, ReplacesAndConcatenates) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  write_file_atomically(folder / "f", Pieces{"ne", "", "w"});
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_EQ(tree(folder.path()), Names{"f"});
}

TEST(WriteFile, SurvivesInterruptionsAndShortWrites) {
  const TemporaryFolder folder;
  const SavedCalls saved;
  static const SavedCalls* real;
  static int count;
  real = &saved;
  count = 0;
  system_calls().write = [](int file, const void* data, size_t bytes) -> ssize_t {
    errno = EINTR;
    return ++count % 2 == 1 ? -1 : real->real().write(file, data, std::min<size_t>(bytes, 3));
  };
  write_file_atomically(folder / "f", Pieces{"0123", "456789"});
  EXPECT_EQ(read_file(folder / "f"), "0123456789");
}

TEST(WriteFile, KeepsTheOldFileOnAnyFailure) {
  const TemporaryFolder folder;
  for (const int error : {ENOSPC, EIO}) {
    write_file_atomically(folder / "f", "old");
    int calls = 0;
    {
      const FaultyCalls counting(0);
      write_file_atomically(folder / "f", Pieces{"new ", "contents"});
      calls = counting.calls();
    }
    ASSERT_GT(calls, 5);
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE(n);
      write_file_atomically(folder / "f", "old");
      bool renamed = false;
      {
        const FaultyCalls faulty(n, error);
        expect_error(ErrorKind::Failed,
                     {folder / "f" + ": cannot be written (", std::strerror(error), "12 bytes"},
                     [&] { write_file_atomically(folder / "f", Pieces{"new ", "contents"}); });
        renamed = n > 6;  // open, two writes, fsync, close, rename; afterwards the folder is synced
      }
      EXPECT_EQ(read_file(folder / "f"), renamed ? "new contents" : "old");
      EXPECT_EQ(tree(folder.path()), Names{"f"});
    }
  }
}

TEST(WriteFile, ReportsWhyAPathIsInvalid) {
  const TemporaryFolder folder;
  make_directories(folder / "sub");
  write_file_atomically(folder / "sub/x", "");
  expect_error(ErrorKind::Failed, {"sub: cannot be written (rename: Is a directory)"},
               [&] { write_file_atomically(folder / "sub", "x"); });
  expect_error(ErrorKind::Failed, {"none/f: cannot be written (open: No such file or directory)"},
               [&] { write_file_atomically(folder / "none/f", "x"); });
  expect_error(ErrorKind::Failed,
               {"/dev/full: cannot be written (write: No space left on device); expected a "
                "writable location with 1 bytes free"},
               [&] { write_file_atomically("/dev/full", "x"); });
  EXPECT_NO_THROW(write_file_atomically("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(tree(folder.path()), (Names{"sub", "sub/x"}));
}

TEST(DirectoryWriter, IsAtomic) {
  const TemporaryFolder folder;
  {
    DirectoryWriter writer(folder / "deep/down/here", 2);
    writer.write("a", {"1"});
    EXPECT_FALSE(is_folder(folder / "deep/down/here"));
    writer.write("b", {"2"});
    writer.commit();
  }
  EXPECT_EQ(tree(folder / "deep/down"), (Names{"here", "here/a", "here/b"}));
  {
    DirectoryWriter(folder / "deep/down/gone", 2).write("a", {"1"});
  }
  EXPECT_EQ(tree(folder / "deep/down"), (Names{"here", "here/a", "here/b"}));
  {
    DirectoryWriter writer(folder / "deep/down/here", 2);  // replaces the directory
    writer.write("c", {"3"});
    writer.commit();
  }
  EXPECT_EQ(tree(folder / "deep/down"), (Names{"here", "here/c"}));
}

TEST(DirectoryWriter, ChecksTheSpaceFirst) {
  const TemporaryFolder folder;
  const SavedCalls saved;
  system_calls().free_space = [](const char*, uint64_t* bytes) {
    *bytes = 1099;
    return 0;
  };
  expect_error(ErrorKind::Failed,
               {"out: not enough space on the disk (1099 bytes free); expected 1100 bytes"},
               [&] { DirectoryWriter(folder / "out", 1000); });
  EXPECT_TRUE(tree(folder.path()).empty());
  EXPECT_NO_THROW(DirectoryWriter(folder / "out", 999));
}

// Writes a folder as a conversion does.
void convert_to(const std::string& path) {
  StagedFolder folder(path);
  write_file_atomically(folder.path() + "/config.json", "new");
  make_directories(folder.path() + "/1_Pooling");
  write_file_atomically(folder.path() + "/1_Pooling/config.json", "new");
  write_file_atomically(folder.path() + "/weights", "new");
  folder.commit("config.json");
}

// Regression: a failed conversion left an incomplete model, which the next conversion treated as
// a complete model.
TEST(StagedFolder, IsAtomicOnAnyFailure) {
  for (int fail_at = 1; fail_at < 100; ++fail_at) {
    const TemporaryFolder folder;
    bool failed = false;
    {
      const FaultyCalls calls(fail_at);
      try {
        convert_to(folder / "out");
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.kind(), ErrorKind::Failed);
      }
      if (calls.calls() < fail_at) {
        EXPECT_GT(fail_at, 10);
        return;
      }
    }
    const Names whole = {"out", "out/1_Pooling", "out/1_Pooling/config.json", "out/config.json",
                         "out/weights"};
    EXPECT_TRUE(tree(folder.path()).empty() || tree(folder.path()) == whole)
        << fail_at << ' ' << failed;
    convert_to(folder / "out");
    EXPECT_EQ(tree(folder.path()), whole);
  }
}

TEST(StagedFolder, MergesIntoAnExistingFolder) {
  for (int fail_at = 1; fail_at < 100; ++fail_at) {
    const TemporaryFolder folder;
    make_directories(folder / "out/1_Pooling");
    write_file_atomically(folder / "out/README.md", "mine");
    write_file_atomically(folder / "out/1_Pooling/config.json", "old");
    write_file_atomically(folder / "out/1_Pooling/more", "old");
    bool ended = false;
    {
      const FaultyCalls calls(fail_at);
      try {
        convert_to(folder / "out/");
      } catch (const Error&) {
        EXPECT_TRUE(!is_file(folder / "out/config.json") || is_file(folder / "out/weights"));
      }
      ended = calls.calls() < fail_at;
    }
    EXPECT_EQ(read_file(folder / "out/README.md"), "mine");
    EXPECT_EQ(read_file(folder / "out/1_Pooling/more"), "old");
    for (const std::string& name : tree(folder.path()))
      EXPECT_EQ(name.find(".saving-"), std::string::npos) << fail_at << ' ' << name;
    if (!ended) continue;
    EXPECT_EQ(read_file(folder / "out/1_Pooling/config.json"), "new");
    EXPECT_EQ(read_file(folder / "out/config.json"), "new");
    EXPECT_GT(fail_at, 10);
    return;
  }
}

TEST(TemporaryFiles, AreRemovedAfterAKilledWriter) {
  const TemporaryFolder folder;
  make_directories(folder / ".saving-checkpoint-7-123/sub");
  write_file_atomically(folder / ".saving-checkpoint-7-123/sub/x", "");
  write_file_atomically(folder / ".log.saving-77-0", "");
  write_file_atomically(folder / "my.saving-plan", "");
  write_file_atomically(folder / ".hidden", "");
  remove_leftovers(folder.path());
  EXPECT_EQ(tree(folder.path()), (Names{".hidden", "my.saving-plan"}));
  EXPECT_NO_THROW(remove_leftovers(folder / "none"));
}

TEST(DirectoryLock, RefusesASecondHolderInThisProcess) {
  const TemporaryFolder folder;
  const DirectoryLock lock(folder / "out");
  expect_error(ErrorKind::Failed,
               {folder / "out" + ": in use by process " + std::to_string(getpid()) +
                "; expected no other process that writes to it"},
               [&] { DirectoryLock(folder / "out"); });
}

TEST(DirectoryLock, IsReleasedWhenItsProcessEnds) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const DirectoryLock lock(folder.path());
    const bool told = write(ready[1], "x", 1) == 1;
    while (told) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  expect_error(ErrorKind::Failed, {"in use by process " + std::to_string(child) + ";"},
               [&] { DirectoryLock(folder.path()); });
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
  EXPECT_NO_THROW(DirectoryLock(folder.path()));
  close(ready[0]);
  close(ready[1]);
}

TEST(Folders, AreCreatedListedAndRemoved) {
  const TemporaryFolder folder;
  make_directories(folder / "a/b/c");
  make_directories(folder / "a/b/c");
  write_file_atomically(folder / "a/z", "");
  write_file_atomically(folder / "a/y", "");
  write_file_atomically(folder / "kept", "kept");
  fs::create_symlink(folder / "kept", folder / "a/link");
  fs::create_directory_symlink(folder.path(), folder / "a/up");
  EXPECT_EQ(list_files(folder / "a"), (Names{"link", "y", "z"}));
  EXPECT_EQ(list_folders(folder / "a"), (Names{"b", "up"}));
  remove_tree(folder / "a");
  EXPECT_EQ(tree(folder.path()), Names{"kept"});  // links were removed, not followed
  EXPECT_NO_THROW(remove_tree(folder / "a"));
  expect_error(ErrorKind::BadFile, {"a: cannot be listed (No such file"},
               [&] { list_files(folder / "a"); });
  expect_error(ErrorKind::Failed, {"kept: cannot be created (File exists); expected a folder"},
               [&] { make_directories(folder / "kept/x"); });
  EXPECT_EQ(parent_of("name"), ".");
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_GT(free_space(folder.path()), 0u);
}

}  // namespace
}  // namespace fovea
