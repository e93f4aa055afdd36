#include "safetensors/stored_zip.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/crc32.h"
#include "base/error.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

// Numbers of the zip format (APPNOTE.TXT 4.3), little-endian.
constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50,
                   kDirectoryEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr uint32_t kLarge = std::numeric_limits<uint32_t>::max();  // the number is elsewhere

// The bytes of an archive, at any position.
class Archive {
 public:
  explicit Archive(const MappedFile& file) : file_(file) {}

  std::string_view bytes(uint64_t begin, uint64_t count, const char* what) const {
    const std::string_view all = file_.bytes();
    if (begin > all.size() || count > all.size() - begin)
      fail(ErrorKind::BadFile, "{}: {} at byte {} needs {} bytes; expected a complete zip archive",
           file_.path(), what, begin, count);
    return all.substr(begin, count);
  }
  template <class T>
  T number(uint64_t at, const char* what) const {
    T value;
    std::memcpy(&value, bytes(at, sizeof value, what).data(), sizeof value);
    return value;
  }
  void expect(uint64_t at, uint32_t signature, const char* what) const {
    if (number<uint32_t>(at, what) != signature)
      fail(ErrorKind::BadFile, "{}: byte {} is not the beginning of {}; expected a zip archive",
           file_.path(), at, what);
  }

  // Returns the position of the end of the directory, before a comment of at most 64 KB.
  uint64_t end() const {
    const std::string_view all = file_.bytes();
    constexpr size_t kMostComment = std::numeric_limits<uint16_t>::max();
    const size_t least = all.size() - std::min(all.size(), kMostComment + kEndBytes);
    for (size_t at = all.size(); at >= least + kEndBytes; --at)
      if (number<uint32_t>(at - kEndBytes, "its end") == kDirectoryEnd) return at - kEndBytes;
    fail(ErrorKind::BadFile, "{}: has no directory at its end; expected a zip archive",
         file_.path());
  }

  // Returns the contents of the entry that the directory describes at `at`.
  std::string_view contents(uint64_t at, const std::string& name) const {
    constexpr const char* kWhat = "an entry";
    const uint32_t flags = number<uint16_t>(at + 8, kWhat),
                   method = number<uint16_t>(at + 10, kWhat),
                   crc = number<uint32_t>(at + 16, kWhat),
                   packed = number<uint32_t>(at + 20, kWhat),
                   size = number<uint32_t>(at + 24, kWhat),
                   local = number<uint32_t>(at + 42, kWhat);
    if ((flags & 1) != 0 || method != 0 || packed != size)
      fail(ErrorKind::Unsupported, "{}: {} is compressed or encrypted; expected stored entries",
           file_.path(), excerpt(name, 80));
    if (size == kLarge || local == kLarge)
      fail(ErrorKind::Unsupported, "{}: {} is beyond 4 GB; expected a smaller archive",
           file_.path(), excerpt(name, 80));
    expect(local, kLocalHeader, "an entry");
    const uint64_t before =
        uint64_t{number<uint16_t>(local + 26, kWhat)} + number<uint16_t>(local + 28, kWhat);
    const std::string_view found = bytes(local + kLocalBytes + before, size, "an entry");
    if (crc32<kZipPolynomial>(found) != crc)
      fail(ErrorKind::BadFile, "{}: {} does not have its checksum; expected an undamaged file",
           file_.path(), excerpt(name, 80));
    return found;
  }

 private:
  const MappedFile& file_;
};

}  // namespace

std::map<std::string, std::string_view> stored_zip_entries(const MappedFile& file) {
  const Archive archive(file);
  const uint64_t end = archive.end();
  const uint64_t count = archive.number<uint16_t>(end + 10, "the directory");
  uint64_t at = archive.number<uint32_t>(end + 16, "the directory");
  std::map<std::string, std::string_view> entries;
  uint64_t read = 0;  // bytes of contents: entries do not overlap
  for (uint64_t i = 0; i < count; ++i) {
    archive.expect(at, kDirectoryEntry, "a directory entry");
    const uint64_t length = archive.number<uint16_t>(at + 28, "an entry"),
                   after = uint64_t{archive.number<uint16_t>(at + 30, "an entry")} +
                           archive.number<uint16_t>(at + 32, "an entry");
    const std::string name(archive.bytes(at + kEntryBytes, length, "a name"));
    const std::string_view contents = archive.contents(at, name);
    read += contents.size();
    if (read > file.size() || !entries.emplace(name, contents).second)
      fail(ErrorKind::BadFile, "{}: {} occurs twice or overlaps others; expected separate entries",
           file.path(), excerpt(name, 80));
    at += kEntryBytes + length + after;
  }
  return entries;
}

}  // namespace fovea
