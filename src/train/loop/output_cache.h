#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/files.h"

namespace fovea::train {

// Results that are expensive to compute, in a file of records by a hash of their input. A file that
// a killed process left remains usable: its complete records are read. Not thread-safe.
class OutputCache {
 public:
  // Reads the existing file `path`, if there is one. `identity` is a hash of what the results
  // depend on besides their inputs; a file of another identity is treated as damaged. Throws
  // BadFile if the file is damaged at its beginning.
  OutputCache(std::string path, uint64_t identity);
  ~OutputCache();
  OutputCache(const OutputCache&) = delete;
  OutputCache& operator=(const OutputCache&) = delete;

  // Returns the result for a key, valid until the next call of a function; nothing if it is unknown
  // or damaged.
  std::optional<std::string_view> find(uint64_t key);
  // Keeps a result: in memory, and in the file after open().
  void add(uint64_t key, std::string_view bytes);
  // Locks the folder, which it creates, and writes the results to the file from now on. Throws
  // Failed if another process uses the folder or if the file cannot be written.
  void open();

 private:
  struct Location {
    uint64_t offset, bytes;  // of the result in the file
  };
  void read_index();
  void write(uint64_t key, std::string_view bytes);
  void append(std::string_view bytes);

  std::string path_;
  uint64_t identity_;
  std::unique_ptr<const MappedFile> mapped_;
  std::unordered_map<uint64_t, Location> locations_;
  std::map<uint64_t, std::string> pending_;  // results before open()
  std::unique_ptr<DirectoryLock> lock_;
  int file_ = -1;
  uint64_t size_ = 0;  // bytes of the file that are valid
};

}  // namespace fovea::train
