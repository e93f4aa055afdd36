#include "inspect/npz.h"

#include <limits>
#include <vector>

#include "base/crc32.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/npy.h"

namespace fovea::study {
namespace {

// Numbers of the zip format (APPNOTE.TXT 4.3 and 4.4), little-endian.
constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50,
                   kDirectoryEnd = 0x06054b50;
constexpr uint16_t kVersion = 20, kUtf8Names = 1 << 11, kStored = 0, kFirstDay = 0x21;  // 1980

void append16(std::string& out, uint32_t value) {
  out += static_cast<char>(value & 0xff);
  out += static_cast<char>(value >> 8 & 0xff);
}

void append32(std::string& out, uint32_t value) {
  append16(out, value & 0xffff);
  append16(out, value >> 16);
}

// The fields that a file's header and its entry in the directory share.
std::string described(const std::string& name, uint32_t crc, uint32_t bytes) {
  std::string out;
  for (const uint32_t value : {kVersion, kUtf8Names, kStored}) append16(out, value);
  append32(out, uint32_t{kFirstDay} << 16);  // the time and the date
  for (const uint32_t value : {crc, bytes, bytes}) append32(out, value);
  append16(out, static_cast<uint32_t>(name.size()));
  append16(out, 0);  // no extra fields
  return out;
}

std::string_view elements_of(const Tensor& x) {
  return {static_cast<const char*>(x.data()), x.bytes()};
}

}  // namespace

void write_npz(const std::string& path, const TraceTensors& tensors) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  std::vector<Tensor> values;
  std::vector<std::string> headers;  // the bytes between the elements of arrays
  std::string directory;
  uint64_t offset = 0;
  check_field(tensors.size() <= std::numeric_limits<uint16_t>::max(), "out",
              "{}: {} tensors; expected a name that ends in .safetensors", path, tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const bool integers = tensor.dtype() == DType::i32;
    values.push_back(integers ? tensor : convert(tensor, DType::f32));
    const std::string file = name + ".npy",
                      header = npy_header(integers ? "<i4" : "<f4", tensor.shape());
    const std::string_view elements = elements_of(values.back());
    const uint64_t bytes = header.size() + elements.size();
    check_field(offset + bytes + (1 << 16) < kMost - directory.size(), "out",
                "{}: more than 4 GiB; expected a name that ends in .safetensors", path);
    const std::string fields =
        described(file, crc32<kZipPolynomial>(elements, crc32<kZipPolynomial>(header)),
                  static_cast<uint32_t>(bytes));
    std::string local;
    append32(local, kLocalHeader);
    local += fields + file + header;
    append32(directory, kDirectoryEntry);
    append16(directory, kVersion);
    directory += fields;
    directory += std::string(10, '\0');  // no comment, disk 0, no attributes
    append32(directory, static_cast<uint32_t>(offset));
    directory += file;
    offset += local.size() + elements.size();
    headers.push_back(std::move(local));
  }
  std::string end;
  append32(end, kDirectoryEnd);
  append32(end, 0);  // disk 0
  for (int i = 0; i < 2; ++i) append16(end, static_cast<uint32_t>(tensors.size()));
  append32(end, static_cast<uint32_t>(directory.size()));
  append32(end, static_cast<uint32_t>(offset));
  append16(end, 0);  // no comment
  Pieces pieces;
  for (size_t i = 0; i < values.size(); ++i) {
    pieces.push_back(headers[i]);
    pieces.push_back(elements_of(values[i]));
  }
  pieces.push_back(directory);
  pieces.push_back(end);
  write_file_atomically(path, pieces);
}

}  // namespace fovea::study
