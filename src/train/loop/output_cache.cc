#include "loop/output_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"

namespace fovea::train {
namespace {

// The file has a FileHeader, then for each result a Entry and its bytes. All integers are
// little-endian.
struct FileHeader {
  char name[8] = {'F', 'O', 'V', 'E', 'A', 'O', 'U', 'T'};
  uint64_t version = 1;
  uint64_t identity = 0;
};
struct Entry {
  uint64_t key = 0, bytes = 0;
  uint64_t hash = 0;  // entry_hash()
};
static_assert(sizeof(FileHeader) == 24 && sizeof(Entry) == 24, "their memory is written");

template <class T>
std::string_view raw_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

uint64_t entry_hash(const Entry& record, std::string_view bytes) {
  Hasher hasher;
  hasher.add({reinterpret_cast<const char*>(&record), offsetof(Entry, hash)});
  hasher.add(bytes);
  return hasher.hash();
}

template <class T>
T value_at(const MappedFile& file, uint64_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

}  // namespace

OutputCache::OutputCache(std::string path, uint64_t identity)
    : path_(std::move(path)), identity_(identity) {
  if (is_file(path_)) read_index();
}

OutputCache::~OutputCache() {
  if (file_ >= 0) system_calls().close(file_);
}

void OutputCache::read_index() {
  mapped_ = std::make_unique<const MappedFile>(path_, MappedFile::Access::random);
  const uint64_t all = mapped_->size();
  if (all < sizeof(FileHeader)) return;  // killed before the first record
  const FileHeader expected{.identity = identity_};
  if (mapped_->bytes().substr(0, sizeof expected) != raw_bytes(expected))
    fail(ErrorKind::BadFile,
         "{}: is no file of a teacher's outputs, or a damaged one; expected to "
         "read or create one there (remove it)",
         path_);
  size_ = sizeof(FileHeader);
  while (all - size_ >= sizeof(Entry)) {
    const auto record = value_at<Entry>(*mapped_, size_);
    const uint64_t begin = size_ + sizeof record;
    if (record.bytes == 0 || record.bytes > all - begin) break;  // an incomplete end
    locations_[record.key] = {begin, record.bytes};
    size_ = begin + record.bytes;
  }
}

std::optional<std::string_view> OutputCache::find(uint64_t key) {
  if (const auto at = pending_.find(key); at != pending_.end()) return at->second;
  const auto at = locations_.find(key);
  if (at == locations_.end()) return std::nullopt;
  const auto [offset, bytes] = at->second;
  if (offset + bytes > (mapped_ ? mapped_->size() : 0))
    mapped_ = std::make_unique<const MappedFile>(path_, MappedFile::Access::random);
  if (offset + bytes > mapped_->size()) return std::nullopt;  // another process changed the file
  const std::string_view found = mapped_->bytes().substr(offset, bytes);
  const auto record = value_at<Entry>(*mapped_, offset - sizeof(Entry));
  if (record.key != key || record.hash != entry_hash(record, found)) return std::nullopt;
  return found;
}

void OutputCache::add(uint64_t key, std::string_view bytes) {
  if (file_ < 0)
    pending_[key] = bytes;
  else
    write(key, bytes);
}

void OutputCache::open() {
  const std::string folder = parent_of(path_);
  make_directories(folder);
  lock_ = std::make_unique<DirectoryLock>(folder);
  locations_.clear();
  size_ = 0;
  if (is_file(path_)) read_index();  // another process may have written it in the meantime
  file_ = system_calls().open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
  if (file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(size_)) != 0) {
    system_calls().close(file_);
    file_ = -1;
  }
  if (file_ < 0)
    fail(ErrorKind::Failed, "{}: cannot be written ({}); expected a writable folder", path_,
         std::generic_category().message(errno));
  if (size_ == 0) append(raw_bytes(FileHeader{.identity = identity_}));
  for (const auto& [key, bytes] : pending_)
    if (!locations_.contains(key)) write(key, bytes);
  pending_.clear();
}

void OutputCache::write(uint64_t key, std::string_view bytes) {
  Entry record{.key = key, .bytes = bytes.size()};
  record.hash = entry_hash(record, bytes);
  append(raw_bytes(record));
  locations_[key] = {size_, bytes.size()};
  append(bytes);
}

void OutputCache::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = system_calls().write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      fail(ErrorKind::Failed,
           "{}: cannot be written ({}); expected space for the outputs of the teacher", path_,
           std::generic_category().message(written == 0 ? ENOSPC : errno));
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace fovea::train
