#pragma once

// Files and folders. Errors name the path and the reason: BadFile if a path cannot be read, Failed
// if it cannot be written, created or removed, OutOfMemory if a file exceeds a limit. Files are
// written under temporary names, so that no partly written file has its final name.

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/core/read_file.h"

namespace fovea {

// The system calls that open, read, write, rename and remove files. A test can replace them, for
// example to make the N-th write fail, while no other thread uses files. Each entry behaves like
// the system call of its name. Locks and listings of folders do not use this table.
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
  int (*free_space)(const char* path, uint64_t* bytes);  // by statvfs; returns 0 or -1
};
SystemCalls& system_calls();

// What to do if a path is a symbolic link or shares its contents with another name (hard link).
enum class Links { follow, refuse };

// A regular file, mapped as read-only memory for the lifetime of the object.
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
  // Call this after the last use of these bytes: they no longer count as memory of this process.
  // Bytes shortly before them may have to be read again.
  void release(const char* begin, size_t bytes) const;

 private:
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// The contents of a file, in consecutive pieces.
using Pieces = std::vector<std::string_view>;

// Writes a new file next to `path`, makes it durable, and replaces the old one in a single step. If
// this fails before the replacement, the old file is unchanged and the new one is removed. A device
// or a FIFO is written directly.
void write_file_atomically(const std::string& path, const Pieces& pieces);
void write_file_atomically(const std::string& path, std::string_view bytes);
// The same for `bytes` bytes that are made while they are written: write_pieces(write) calls
// write() with one piece after the other. An exception of write_pieces leaves no file.
using WritePiece = std::function<void(std::string_view piece)>;
void write_file_atomically(const std::string& path, uint64_t bytes,
                           const std::function<void(const WritePiece& write)>& write_pieces);

// Writes a folder of files in the same way: it appears under its name complete or not at all.
class DirectoryWriter {
 public:
  // `bytes` is the total size of the files. Throws Failed if less than 1.1 times as much is free.
  DirectoryWriter(const std::string& path, uint64_t bytes);
  // Removes the temporary folder: the new one, or the old one after a commit that replaced it.
  ~DirectoryWriter();
  DirectoryWriter(const DirectoryWriter&) = delete;
  DirectoryWriter& operator=(const DirectoryWriter&) = delete;

  void write(const std::string& name, const Pieces& pieces);
  void commit();  // replaces an older folder of the same name

 private:
  std::string path_;       // the final name
  std::string temporary_;  // PARENT/.saving-NAME-PID
  uint64_t bytes_ = 0;
  bool committed_ = false;
};

// A folder that is filled under a temporary path and gets its final name when it is complete.
// Without commit(), nothing of it remains.
class StagedFolder {
 public:
  explicit StagedFolder(const std::string& path);
  ~StagedFolder();  // removes the temporary folder
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::string& path() const { return temporary_; }  // where to write
  // A new folder gets its final name in a single step. If the folder exists, the files are moved
  // into it one by one; the file `last`, which marks the folder as complete, is moved last.
  void commit(const std::string& last);

 private:
  std::string path_;       // the final name
  std::string temporary_;  // next to path_, or in path_ if that exists
  bool joins_ = false;     // path_ existed before
  bool committed_ = false;
};

// Removes the temporary files and folders of killed processes from `folder`. Only the process that
// holds the folder's DirectoryLock may call this.
void remove_leftovers(const std::string& folder);

// Locks a folder for this process; the lock ends at the latest when the process ends. Throws Failed
// if this or another process already holds a lock of the folder.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& folder);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int file_ = -1;
};

uint64_t free_space(const std::string& path);  // bytes that this user may write there
void make_directories(const std::string& path);
// Removes symbolic links without following them. Does nothing if the path does not exist.
void remove_tree(const std::string& path);
// Like remove_tree(), but if the process is killed, the folder either remains complete or has a
// temporary name. Throws Failed if the path does not exist.
void remove_folder(const std::string& path);
bool is_folder(const std::string& path);
bool is_file(const std::string& path);                           // a regular file, or a link to one
std::string parent_of(const std::string& path);                  // "." if it names no folder
std::vector<std::string> list_files(const std::string& folder);  // names of regular files, sorted
std::vector<std::string> list_folders(const std::string& folder);  // names of folders in it, sorted

}  // namespace fovea
