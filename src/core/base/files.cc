#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "fovea/core/mapped_file.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

int free_space_of(const char* path, uint64_t* bytes) {
  struct statvfs status;
  if (statvfs(path, &status) != 0) return -1;
  // Some network file systems report no sizes; a write then fails if the space is insufficient.
  *bytes = status.f_blocks == 0 ? UINT64_MAX : uint64_t{status.f_bavail} * status.f_frsize;
  return 0;
}

SystemCalls real_calls() {
  return {
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .fstat = ::fstat,
      .read = ::read,
      .write = ::write,
      .fsync = ::fsync,
      .close = ::close,
      .mmap = ::mmap,
      .rename = ::rename,
      .exchange =
          [](const char* one, const char* other) {
            return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
          },
      .mkdir = ::mkdir,
      .unlink = ::unlink,
      .rmdir = ::rmdir,
      .free_space = free_space_of,
  };
}

std::string reason(int error) { return std::generic_category().message(error); }

// An open file; the destructor closes it.
class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0)
      : file_(system_calls().open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return file_ >= 0; }
  int descriptor() const { return file_; }

  // Linux closes the file even if close() fails with EINTR.
  bool close() {
    const int file = std::exchange(file_, -1);
    return file < 0 || system_calls().close(file) == 0 || errno == EINTR;
  }

  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISFIFO(mode)) return "is a FIFO";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is a device";
}

// Returns the size of a newly opened file; throws if it is not a regular file.
size_t size_of_regular(const File& file, const std::string& path, Links links) {
  constexpr const char* expected = "expected a regular file";
  if (!file.is_open()) {
    if (errno == ENOENT) fail(ErrorKind::BadFile, "{}: is missing; {}", path, expected);
    if (errno == ELOOP && links == Links::refuse) {
      fail(ErrorKind::BadFile, "{}: is a symbolic link; {}", path, expected);
    }
    fail(ErrorKind::BadFile, "{}: cannot be opened ({}); {}", path, reason(errno), expected);
  }
  struct stat status;
  if (system_calls().fstat(file.descriptor(), &status) != 0) {
    fail(ErrorKind::BadFile, "{}: cannot be read ({}); {}", path, reason(errno), expected);
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::BadFile, "{}: {}; {}", path, kind_of(status.st_mode), expected);
  }
  if (links == Links::refuse && status.st_nlink > 1) {
    fail(ErrorKind::BadFile, "{}: has {} names (hard links); {} with one name", path,
         status.st_nlink, expected);
  }
  return static_cast<size_t>(status.st_size);
}

// With O_NONBLOCK, opening a FIFO does not wait for a writer.
int read_flags(Links links) {
  return O_RDONLY | O_NONBLOCK | O_NOCTTY | (links == Links::refuse ? O_NOFOLLOW : 0);
}

// A file or folder that is being written, for error messages.
struct Target {
  const std::string& path;
  uint64_t bytes;
};

[[noreturn]] void fail_to_write(const Target& target, const char* call) {
  const int error = errno;
  fail(ErrorKind::Failed,
       "{}: cannot be written ({}: {}); expected a writable location with {} bytes free",
       target.path, call, reason(error), target.bytes);
}

using WritePieces = std::function<void(const WritePiece& write)>;

void write_all(const File& file, const WritePieces& write_pieces, const Target& target) {
  write_pieces([&](std::string_view rest) {
    while (!rest.empty()) {
      const ssize_t written = system_calls().write(file.descriptor(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written == 0) errno = ENOSPC;
      if (written <= 0) fail_to_write(target, "write");
      rest.remove_prefix(static_cast<size_t>(written));
    }
  });
}

void write_durably(const std::string& path, const WritePieces& write_pieces, const Target& target) {
  File file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (!file.is_open()) fail_to_write(target, "open");
  write_all(file, write_pieces, target);
  if (system_calls().fsync(file.descriptor()) != 0) fail_to_write(target, "fsync");
  if (!file.close()) fail_to_write(target, "close");
}

// Makes the names in a folder durable. The error EINVAL, of file systems that do not support this,
// is ignored.
void sync_folder(const std::string& folder, const Target& target) {
  File file(folder, O_RDONLY | O_DIRECTORY);
  if (!file.is_open()) fail_to_write(target, "open");
  if (system_calls().fsync(file.descriptor()) != 0 && errno != EINVAL) {
    fail_to_write(target, "fsync");
  }
  if (!file.close()) fail_to_write(target, "close");
}

constexpr std::string_view kSaving = ".saving-";  // part of every temporary name

std::string temporary_folder(const std::string& path) {
  return fmt::format("{}/{}{}-{}", parent_of(path), kSaving, fs::path(path).filename().string(),
                     getpid());
}

uint64_t total(const Pieces& pieces) {
  uint64_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  return bytes;
}

// Writes directly to a device or FIFO, which cannot be replaced.
void write_through(const Target& target, const WritePieces& write_pieces) {
  File file(target.path, O_WRONLY | O_NOCTTY);
  if (!file.is_open()) fail_to_write(target, "open");
  write_all(file, write_pieces, target);
  if (!file.close()) fail_to_write(target, "close");
}

WritePieces each_of(const Pieces& pieces) {
  return [&pieces](const WritePiece& write) {
    for (const std::string_view piece : pieces) write(piece);
  };
}

}  // namespace

SystemCalls& system_calls() {
  static SystemCalls calls = real_calls();
  return calls;
}

std::string read_file(const std::string& path, size_t limit) {
  const File file(path, read_flags(Links::follow));
  const size_t size = size_of_regular(file, path, Links::follow);
  std::string text;
  if (size <= limit) text.resize(size + 1);  // one more byte: the end is then found without growing
  for (size_t filled = 0; size <= limit;) {
    const ssize_t got =
        system_calls().read(file.descriptor(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail(ErrorKind::BadFile, "{}: cannot be read ({}); expected {} bytes", path, reason(errno),
           size);
    }
    filled += static_cast<size_t>(got);
    if (filled > limit) break;
    if (got == 0) {
      text.resize(filled);
      return text;
    }
    // Files in /proc have size 0, and a log may grow while it is read.
    if (filled == text.size()) text.resize(std::min(2 * filled + 4096, limit + 1));
  }
  fail(ErrorKind::OutOfMemory, "{}: is too large ({} bytes); expected at most {} bytes", path, size,
       limit);
}

namespace {

// The mapped files, which signal handlers search by address; files beyond this number are not
// found.
std::array<std::atomic<const MappedFile*>, 256> mapped_files;

void register_file(const MappedFile* file) {
  for (auto& slot : mapped_files) {
    const MappedFile* nothing = nullptr;
    if (slot.compare_exchange_strong(nothing, file)) return;
  }
}

void unregister_file(const MappedFile* file) {
  for (auto& slot : mapped_files) {
    const MappedFile* here = file;
    if (slot.compare_exchange_strong(here, nullptr)) return;
  }
}

}  // namespace

const char* mapped_file_at(const void* address) noexcept {
  for (const auto& slot : mapped_files) {
    const MappedFile* file = slot;
    if (file == nullptr) continue;
    const auto offset =
        reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(file->data());
    if (offset < file->size()) return file->path().c_str();
  }
  return nullptr;
}

MappedFile::MappedFile(const std::string& path, Access access, Links links) : path_(path) {
  const File file(path, read_flags(links));
  size_ = size_of_regular(file, path, links);
  if (size_ == 0) return;  // nothing to map
  void* address = system_calls().mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) {
    fail(errno == ENOMEM ? ErrorKind::OutOfMemory : ErrorKind::BadFile,
         "{}: cannot be mapped ({}); expected {} bytes of address space", path, reason(errno),
         size_);
  }
  madvise(address, size_, access == Access::sequential ? MADV_SEQUENTIAL : MADV_RANDOM);
  data_ = static_cast<const char*>(address);
  register_file(this);
}

void MappedFile::release(const char* begin, size_t bytes) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // A page fault maps pages around it as well, which may be pages that were released before.
  constexpr uintptr_t kAround = 64 << 10;
  const auto start =
      std::max(reinterpret_cast<uintptr_t>(data_), reinterpret_cast<uintptr_t>(begin) - kAround);
  const auto first = (start + page - 1) / page * page;
  const auto last = (reinterpret_cast<uintptr_t>(begin) + bytes) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  unregister_file(this);
  munmap(const_cast<char*>(data_), size_);
}

void write_file_atomically(const std::string& path, uint64_t bytes,
                           const WritePieces& write_pieces) {
  const Target target{path, bytes};
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && fs::is_other(status)) return write_through(target, write_pieces);

  static std::atomic<unsigned> count{0};  // two threads may write the same file
  const std::string folder = parent_of(path);
  const std::string temporary = fmt::format(
      "{}/.{}{}{}-{}", folder, fs::path(path).filename().string(), kSaving, getpid(), count++);
  system_calls().unlink(temporary.c_str());  // left by a killed process with the same id
  try {
    write_durably(temporary, write_pieces, target);
    if (system_calls().rename(temporary.c_str(), path.c_str()) != 0)
      fail_to_write(target, "rename");
  } catch (...) {
    system_calls().unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder, target);
}

void write_file_atomically(const std::string& path, const Pieces& pieces) {
  write_file_atomically(path, total(pieces), each_of(pieces));
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  write_file_atomically(path, Pieces{bytes});
}

DirectoryWriter::DirectoryWriter(const std::string& path, uint64_t bytes)
    : path_(path), bytes_(bytes) {
  const std::string parent = parent_of(path);
  make_directories(parent);
  const uint64_t free = free_space(parent);
  const uint64_t needed = bytes + bytes / 10;  // for names, partly filled blocks, other writers
  if (free < needed) {
    fail(ErrorKind::Failed, "{}: not enough space on the disk ({} bytes free); expected {} bytes",
         path, free, needed);
  }
  temporary_ = temporary_folder(path);
  remove_tree(temporary_);
  if (system_calls().mkdir(temporary_.c_str(), 0777) != 0) fail_to_write({path_, bytes_}, "mkdir");
}

DirectoryWriter::~DirectoryWriter() {
  if (committed_) return;
  try {
    remove_tree(temporary_);
  } catch (const Error&) {  // remove_leftovers() will try again
  }
}

void DirectoryWriter::write(const std::string& name, const Pieces& pieces) {
  write_durably(temporary_ + "/" + name, each_of(pieces), {path_, bytes_});
}

void DirectoryWriter::commit() {
  const Target target{path_, bytes_};
  sync_folder(temporary_, target);
  if (!is_folder(path_)) {
    if (system_calls().rename(temporary_.c_str(), path_.c_str()) != 0)
      fail_to_write(target, "rename");
    committed_ = true;
    return sync_folder(parent_of(path_), target);
  }
  // Exchanges the folders in one step; the destructor removes the older one.
  if (system_calls().exchange(temporary_.c_str(), path_.c_str()) != 0) {
    fail_to_write(target, "rename");
  }
  sync_folder(parent_of(path_), target);
}

StagedFolder::StagedFolder(const std::string& path) : path_(path), joins_(is_folder(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  temporary_ = temporary_folder(joins_ ? path_ + "/new" : path_);
  make_directories(parent_of(temporary_));
  remove_tree(temporary_);  // left by a killed process with the same id
  if (system_calls().mkdir(temporary_.c_str(), 0777) != 0) fail_to_write({path_, 0}, "mkdir");
}

StagedFolder::~StagedFolder() {
  if (committed_) return;
  try {
    remove_tree(temporary_);
  } catch (const Error&) {  // a folder that cannot be written may not be removable
  }
}

namespace {

// Moves the contents of one folder into another, the file `last` after all others.
void move_contents(const std::string& from, const std::string& to, const std::string& last) {
  const auto move = [&](const std::string& name) {
    const std::string source = from + "/" + name, path = to + "/" + name;
    if (system_calls().rename(source.c_str(), path.c_str()) != 0)
      fail_to_write({path, 0}, "rename");
  };
  for (const std::string& name : list_folders(from)) {
    const std::string folder = to + "/" + name;
    if (is_folder(folder))
      move_contents(from + "/" + name, folder, "");
    else
      move(name);
  }
  for (const std::string& name : list_files(from))
    if (name != last) move(name);
  if (is_file(from + "/" + last)) move(last);
  sync_folder(to, {to, 0});
}

}  // namespace

void StagedFolder::commit(const std::string& last) {
  if (joins_) return move_contents(temporary_, path_, last);  // the destructor removes temporary_
  const Target target{path_, 0};
  sync_folder(temporary_, target);
  if (system_calls().rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_to_write(target, "rename");
  committed_ = true;
  sync_folder(parent_of(path_), target);
}

void remove_leftovers(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name[0] == '.' && name.find(kSaving) != std::string::npos)
      found.push_back(entry->path().string());
  }
  for (const std::string& path : found) remove_tree(path);
}

DirectoryLock::DirectoryLock(const std::string& folder) {
  make_directories(folder);
  const std::string path = folder + "/.lock";
  File file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
  if (!file.is_open()) fail_to_write({path, 0}, "open");
  if (flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail_to_write({path, 0}, "flock");
    char holder[16] = {};
    const ssize_t digits = system_calls().read(file.descriptor(), holder, sizeof holder - 1);
    fail(ErrorKind::Failed, "{}: in use by process {}; expected no other process that writes to it",
         folder, digits > 0 ? holder : "(unknown)");
  }
  const std::string mine = std::to_string(getpid());
  if (ftruncate(file.descriptor(), 0) != 0) fail_to_write({path, mine.size()}, "ftruncate");
  write_all(file, each_of({mine}), {path, mine.size()});
  file_ = file.release();
}

// The file is not removed, since removing it could race with a process that has just opened it.
DirectoryLock::~DirectoryLock() { system_calls().close(file_); }

uint64_t free_space(const std::string& path) {
  uint64_t bytes = 0;
  if (system_calls().free_space(path.c_str(), &bytes) != 0) {
    fail(ErrorKind::Failed, "{}: the free space is not known ({}); expected a folder", path,
         reason(errno));
  }
  return bytes;
}

void make_directories(const std::string& path) {
  if (is_folder(path)) return;
  const std::string parent = parent_of(path);
  if (parent != path && !is_folder(parent)) make_directories(parent);
  if (system_calls().mkdir(path.c_str(), 0777) != 0 && !is_folder(path)) {
    fail(ErrorKind::Failed, "{}: cannot be created ({}); expected a folder", path, reason(errno));
  }
}

void remove_tree(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return;
  const bool folder = fs::is_directory(status);
  if (folder) {
    std::vector<std::string> entries;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      entries.push_back(entry->path().string());
    }
    for (const std::string& entry : entries) remove_tree(entry);
  }
  if ((folder ? system_calls().rmdir : system_calls().unlink)(path.c_str()) != 0 &&
      errno != ENOENT) {
    fail(ErrorKind::Failed, "{}: cannot be removed ({}); expected a writable folder", path,
         reason(errno));
  }
}

void remove_folder(const std::string& path) {
  const std::string leftover = temporary_folder(path);
  remove_tree(leftover);
  if (system_calls().rename(path.c_str(), leftover.c_str()) != 0) {
    fail(ErrorKind::Failed, "{}: cannot be removed ({}); expected a writable folder", path,
         reason(errno));
  }
  remove_tree(leftover);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

namespace {

template <class Wanted>
std::vector<std::string> list(const std::string& folder, Wanted&& wanted) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (wanted(entry->path().string())) names.push_back(entry->path().filename().string());
  }
  if (error)
    fail(ErrorKind::BadFile, "{}: cannot be listed ({}); expected a folder", folder,
         error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> list_files(const std::string& folder) { return list(folder, is_file); }
std::vector<std::string> list_folders(const std::string& folder) { return list(folder, is_folder); }

}  // namespace fovea
