#include "loop/output_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class OutputCaches : public testing::Test {
 protected:
  void write(uint64_t first, uint64_t last) const {
    OutputCache cache(path_, 7);
    cache.open();
    for (uint64_t key = first; key < last; ++key) cache.add(key, result(key));
  }
  static std::string result(uint64_t key) { return std::string(key + 1, static_cast<char>(key)); }
  // Returns the number of keys below `count` that are found.
  int64_t found(uint64_t count) const {
    OutputCache cache(path_, 7);
    int64_t number = 0;
    for (uint64_t key = 0; key < count; ++key) {
      const auto bytes = cache.find(key);
      if (!bytes) continue;
      EXPECT_EQ(*bytes, result(key));
      ++number;
    }
    return number;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "sub/cache.bin";
};

TEST_F(OutputCaches, KeepResultsBetweenRuns) {
  EXPECT_EQ(found(5), 0);
  write(0, 5);
  EXPECT_EQ(found(9), 5);
  write(5, 9);
  EXPECT_EQ(found(9), 9);
}

// Nothing is written before open(), for example by a run that is refused.
TEST_F(OutputCaches, WriteNothingBeforeTheyAreOpened) {
  OutputCache cache(path_, 7);
  cache.add(3, "abc");
  EXPECT_EQ(cache.find(3), "abc");
  EXPECT_FALSE(is_file(path_));
  cache.open();
  EXPECT_EQ(cache.find(3), "abc");
  expect_error(ErrorKind::Failed, {"expected"},
               [&] { OutputCache(path_, 7).open(); });  // one at a time
}

// A file of any length that a killed process leaves keeps its complete results.
TEST_F(OutputCaches, SurviveAKilledProcess) {
  write(0, 3);
  const std::string bytes = read_file(path_);
  int64_t most = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    write_file_atomically(path_, bytes.substr(0, size));
    const int64_t kept = found(3);
    EXPECT_LE(kept, 2);
    most = std::max(most, kept);
    write(kept, 3);
    EXPECT_EQ(read_file(path_), bytes) << size;
  }
  EXPECT_EQ(most, 2);
  write_file_atomically(path_, bytes + std::string(100, 0));  // a file system added zeros
  write(3, 4);
  EXPECT_EQ(found(4), 4);
}

TEST_F(OutputCaches, IgnoreDamagedResults) {
  write(0, 3);
  std::string bytes = read_file(path_);
  bytes.back() ^= 1;
  write_file_atomically(path_, bytes);
  EXPECT_EQ(found(3), 2);
  write(2, 3);
  EXPECT_EQ(found(3), 3);
  bytes[0] = 'X';
  write_file_atomically(path_, bytes);
  expect_error(ErrorKind::BadFile, {path_, "remove it"}, [&] { OutputCache(path_, 7); });
}

}  // namespace
}  // namespace fovea::train
