#include <algorithm>

#include "base/error.h"
#include "base/gguf.h"

namespace fovea {
namespace {

constexpr uint32_t kVersion = 3;
constexpr char kZeros[kGgufAlignment] = {};

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& bytes, std::string_view text) {
  append(bytes, uint64_t{text.size()});
  bytes += text;
}

uint64_t aligned(uint64_t bytes) {
  return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

// Returns everything before the elements, with the padding.
std::string header_of(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors) {
  std::string header = "GGUF";
  append(header, kVersion);
  append(header, uint64_t{tensors.size()});
  append(header, metadata.count());
  header += metadata.bytes();
  uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    append_text(header, tensor.name);
    append(header, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      append(header, static_cast<uint64_t>(*size));
    append(header, tensor.block->number);
    append(header, offset);
    offset += aligned(tensor.bytes);
  }
  header.resize(aligned(header.size()));
  return header;
}

}  // namespace

void GgufMetadata::begin(std::string_view key, GgufType type) {
  append_text(bytes_, key);
  append(bytes_, static_cast<uint32_t>(type));
  ++count_;
}

void GgufMetadata::begin_array(std::string_view key, GgufType type, size_t count) {
  begin(key, GgufType::array);
  append(bytes_, static_cast<uint32_t>(type));
  append(bytes_, uint64_t{count});
}

void GgufMetadata::integer(std::string_view key, uint32_t value) {
  begin(key, GgufType::u32);
  append(bytes_, value);
}

void GgufMetadata::number(std::string_view key, float value) {
  begin(key, GgufType::f32);
  append(bytes_, value);
}

void GgufMetadata::boolean(std::string_view key, bool value) {
  begin(key, GgufType::boolean);
  append(bytes_, static_cast<uint8_t>(value));
}

void GgufMetadata::text(std::string_view key, std::string_view value) {
  begin(key, GgufType::text);
  append_text(bytes_, value);
}

void GgufMetadata::integers(std::string_view key, const std::vector<int32_t>& values) {
  begin_array(key, GgufType::i32, values.size());
  for (const int32_t value : values) append(bytes_, value);
}

void GgufMetadata::numbers(std::string_view key, const std::vector<float>& values) {
  begin_array(key, GgufType::f32, values.size());
  for (const float value : values) append(bytes_, value);
}

void GgufMetadata::booleans(std::string_view key, const std::vector<bool>& values) {
  begin_array(key, GgufType::boolean, values.size());
  for (const bool value : values) append(bytes_, static_cast<uint8_t>(value));
}

void GgufMetadata::texts(std::string_view key, const std::vector<std::string>& values) {
  begin_array(key, GgufType::text, values.size());
  for (const std::string& value : values) append_text(bytes_, value);
}

void GgufMetadata::raw(std::string_view key, std::string_view bytes) {
  begin_array(key, GgufType::u8, bytes.size());
  bytes_ += bytes;
}

void write_gguf(const std::string& path, const GgufMetadata& metadata,
                const std::vector<GgufTensor>& tensors,
                const std::function<std::string_view(size_t index)>& elements) {
  const std::string header = header_of(metadata, tensors);
  uint64_t bytes = header.size();
  for (const GgufTensor& tensor : tensors) bytes += aligned(tensor.bytes);
  write_file_atomically(path, bytes, [&](const WritePiece& write) {
    write(header);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string_view made = elements(i);
      check(made.size() == tensors[i].bytes, "{}: {} has {} bytes; expected {}", path,
            tensors[i].name, made.size(), tensors[i].bytes);
      write(made);
      write({kZeros, aligned(made.size()) - made.size()});
    }
  });
}

GgufImage::GgufImage(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors)
    : header_(header_of(metadata, tensors)) {
  pieces_.push_back(header_);
  for (const GgufTensor& tensor : tensors) {
    pieces_.emplace_back(tensor.data, tensor.bytes);
    pieces_.emplace_back(kZeros, aligned(tensor.bytes) - tensor.bytes);
  }
}

}  // namespace fovea
