#pragma once

// Files and folders. Errors name the path and the reason: BadFile for what cannot be read, Failed
// for what cannot be written, OutOfMemory for what exceeds a limit. Nothing here is left half
// written under its final name.

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/read_file.h"

namespace fovea {

// The one seam to the file system: every function below goes through it, so that a test can let the
// N-th write fail. Each entry answers as the system call of its name does. Replace entries only
// while no other thread uses files.
struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*fstat)(int file, struct stat* status);
  ssize_t (*read)(int file, void* data, size_t bytes);
  ssize_t (*write)(int file, const void* data, size_t bytes);
  int (*fsync)(int file);
  int (*close)(int file);
  void* (*mmap)(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
  int (*rename)(const char* from, const char* to);
  int (*exchange)(const char* one, const char* other);  // renameat2 with RENAME_EXCHANGE
  int (*mkdir)(const char* path, mode_t mode);
  int (*unlink)(const char* path);
  int (*rmdir)(const char* path);
  int (*free_space)(const char* path, uint64_t* bytes);
};
SystemCalls& system_calls();

// What to do where a path is a symbolic link or shares its contents with another name (hard link).
enum class Links { follow, refuse };

// A regular file as read-only memory, for as long as the object lives.
class MappedFile {
 public:
  enum class Access { sequential, random };
  explicit MappedFile(const std::string& path, Access access = Access::sequential,
                      Links links = Links::follow);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view bytes() const { return {data_, size_}; }
  // Says that these bytes are done with: they stop counting as this process's memory.
  void release(const char* begin, size_t bytes) const;

 private:
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Pieces that make one file when put one after the other.
using Pieces = std::vector<std::string_view>;

// Writes a new file beside `path`, makes it durable, and puts it in place of the old one in a
// single step. Until that step a failure leaves the old file as it was and no trace of the new one.
// A device or a FIFO is written to as it is.
void write_file_atomically(const std::string& path, const Pieces& pieces);
void write_file_atomically(const std::string& path, std::string_view bytes);

// Writes a folder of files the same way: all of it appears under its name at once, or nothing does.
class DirectoryWriter {
 public:
  // `bytes` is what the files will hold together: refused with Failed if the disk has less than 1.1
  // times that.
  DirectoryWriter(const std::string& path, uint64_t bytes);
  ~DirectoryWriter();  // removes what was not committed
  DirectoryWriter(const DirectoryWriter&) = delete;
  DirectoryWriter& operator=(const DirectoryWriter&) = delete;

  void write(const std::string& name, const Pieces& pieces);
  void commit();  // takes the place of an older folder of the same name

 private:
  std::string path_;       // the final name
  std::string temporary_;  // PARENT/.saving-NAME-PID
  uint64_t bytes_ = 0;
  bool committed_ = false;
};

// A folder that is filled through its path by functions which know nothing of this one, and that
// appears under its name when it is complete: until then a failure leaves no trace.
class StagedFolder {
 public:
  explicit StagedFolder(const std::string& path);
  ~StagedFolder();  // removes what was not committed
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& path() const { return temporary_; }  // where to write
  // A new folder gets its name at once. Where there is one already, files join those in it, and
  // `last`, by which others know that the folder is complete, is the last of them.
  void commit(const std::string& last);

 private:
  std::string path_;       // the final name
  std::string temporary_;  // beside it, or in it where it exists
  bool joins_ = false;     // an existing folder
  bool committed_ = false;
};

// Removes what killed writers left in the folder. Only for the one process that writes there
// (DirectoryLock).
void remove_leftovers(const std::string& folder);

// Holds a folder for this process; the lock goes with the process, however it ends. Failed if
// another one holds it.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& folder);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int file_ = -1;
};

uint64_t free_space(const std::string& path);  // bytes that this user may still write to that disk
void make_directories(const std::string& path);
// Links are removed, not followed; it is no error if nothing is there.
void remove_tree(const std::string& path);
// The same, but a kill leaves all of it, or a leftover under another name.
void remove_folder(const std::string& path);
bool is_folder(const std::string& path);
bool is_file(const std::string& path);                           // a regular file, or a link to one
std::string parent_of(const std::string& path);                  // "." for a plain name
std::vector<std::string> list_files(const std::string& folder);  // names of regular files, sorted
std::vector<std::string> list_folders(const std::string& folder);  // names of folders in it, sorted

}  // namespace fovea
