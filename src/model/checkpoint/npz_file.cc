#include "checkpoint/npz_file.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "base/error.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

// Signatures and sizes of the records of a ZIP archive (APPNOTE 6.3, 4.3).
constexpr std::string_view kLocal = "PK\3\4", kCentral = "PK\1\2", kEnd = "PK\5\6";
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMostComment = 65535;
constexpr uint64_t kIn64 = 0xFFFFFFFF;  // the value is in a record of 64 bits

uint64_t number_at(std::string_view bytes, size_t at, size_t width) {
  uint64_t number = 0;
  for (size_t i = width; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
  return number;
}

[[noreturn]] void damaged(const std::string& path, std::string_view name, const char* wrong) {
  fail(ErrorKind::BadFile, "{}: {} ({}); expected a complete .npz file", path, wrong,
       name.empty() ? "the archive" : excerpt(name));
}

// Returns what follows a key in the header of an array: "{'descr': '<f4', 'shape': (2, 3), ...}".
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == header.npos) return "";
  const size_t begin = header.find_first_not_of(": ", at + key.size());
  return begin == header.npos ? "" : header.substr(begin);
}

Shape shape_in(std::string_view text, const std::string& path, std::string_view name) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == text.npos) damaged(path, name, "an array has no shape");
  Shape shape;
  for (size_t at = 1; at < end;) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(text.data() + at, text.data() + end, extent);
    if (error != std::errc() || extent < 0) damaged(path, name, "an array has a damaged shape");
    shape.push_back(extent);
    at = static_cast<size_t>(next - text.data());
  }
  return shape;
}

NpzArray array_in(std::string_view npy, const std::string& path, std::string_view name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr size_t kVersionAt = 6, kLengthAt = 8;
  if (!npy.starts_with(kMagic) || npy.size() < kLengthAt + 4)
    damaged(path, name, "an entry is no array of NumPy");
  const size_t width = npy[kVersionAt] == 1 ? 2 : 4;
  const uint64_t length = number_at(npy, kLengthAt, width);
  if (length > npy.size() - kLengthAt - width) damaged(path, name, "the header of an array is cut");
  const std::string_view header = npy.substr(kLengthAt + width, length);
  NpzArray array;
  array.bytes = npy.substr(kLengthAt + width + length);
  const std::string_view type = value_of(header, "'descr'");
  const size_t end = type.find('\'', 1);
  if (!type.starts_with('\'') || end == type.npos || end < 3)
    damaged(path, name, "an array has no type");
  array.type = type.substr(2, end - 2);
  array.shape = shape_in(value_of(header, "'shape'"), path, name);
  if (type[1] == '>' || value_of(header, "'fortran_order'").starts_with("True"))
    fail(ErrorKind::Unsupported,
         "{}: {} is big-endian or in Fortran's order; expected little-endian rows", path,
         excerpt(name));
  uint64_t bytes = static_cast<uint64_t>(array.type.back() - '0');
  for (const int64_t extent : array.shape)
    bytes = checked_multiply<uint64_t>(bytes, static_cast<uint64_t>(extent), path);
  if (array.bytes.size() < bytes) damaged(path, name, "an array is cut");
  array.bytes = array.bytes.substr(0, bytes);
  return array;
}

}  // namespace

NpzFile::NpzFile(const std::string& path) : file_(std::make_shared<const MappedFile>(path)) {
  const std::string_view bytes = file_->bytes();
  if (bytes.size() < kEndBytes) damaged(path, "", "the file is too short");
  const size_t tail = bytes.size() - std::min(bytes.size(), kEndBytes + kMostComment);
  const size_t in_tail = bytes.substr(tail).rfind(kEnd);
  if (in_tail == bytes.npos || bytes.size() - tail - in_tail < kEndBytes)
    damaged(path, "", "the table of contents is missing");
  const size_t end = tail + in_tail;
  const uint64_t count = number_at(bytes, end + 10, 2);
  uint64_t at = number_at(bytes, end + 16, 4);
  for (uint64_t i = 0; i < count; ++i) {
    if (at > end || end - at < kCentralBytes || !bytes.substr(at).starts_with(kCentral))
      damaged(path, "", "the table of contents is cut");
    const uint64_t name = number_at(bytes, at + 28, 2),
                   more = number_at(bytes, at + 30, 2) + number_at(bytes, at + 32, 2);
    if (end - at - kCentralBytes < name + more) damaged(path, "", "the table of contents is cut");
    read_entry(bytes.substr(at, kCentralBytes), bytes.substr(at + kCentralBytes, name));
    at += kCentralBytes + name + more;
  }
}

void NpzFile::read_entry(std::string_view entry, std::string_view name) {
  const std::string& path = file_->path();
  const std::string_view bytes = file_->bytes();
  const uint64_t size = number_at(entry, 24, 4), at = number_at(entry, 42, 4);
  if (number_at(entry, 10, 2) != 0)
    fail(ErrorKind::Unsupported, "{}: {} is compressed; expected stored arrays (numpy.savez)", path,
         excerpt(name));
  if (size == kIn64 || at == kIn64)
    fail(ErrorKind::Unsupported, "{}: {} is beyond 4 GB; expected a smaller file", path,
         excerpt(name));
  if (at > bytes.size() || bytes.size() - at < kLocalBytes || !bytes.substr(at).starts_with(kLocal))
    damaged(path, name, "an entry is missing");
  const uint64_t begin =
      at + kLocalBytes + number_at(bytes, at + 26, 2) + number_at(bytes, at + 28, 2);
  if (begin > bytes.size() || bytes.size() - begin < size) damaged(path, name, "an entry is cut");
  std::string_view key = name;
  if (key.ends_with(".npy")) key.remove_suffix(4);
  if (!arrays_.emplace(key, array_in(bytes.substr(begin, size), path, name)).second)
    damaged(path, name, "an array is there twice");
}

const NpzArray* NpzFile::find(const std::string& name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : &found->second;
}

}  // namespace fovea::model
