#pragma once

// The GGUF container (github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3,
// little-endian: typed metadata by key, then a list of tensors, then their elements in blocks.
// Reading checks everything except the elements; no allocation depends on an unchecked size in the
// file. Throws BadFile if the file is damaged, and Unsupported if its version, the type of a tensor
// or an array of arrays is not supported. The message names the file and the key or tensor.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace fovea {

// The alignment of tensors if general.alignment is missing.
constexpr uint64_t kGgufAlignment = 32;

enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64
};

// A value in the file: `count` consecutive elements of `type`.
struct GgufValue {
  std::string key;
  GgufType type = GgufType::u8;  // type of the elements, for an array
  bool is_array = false;
  uint64_t count = 1;
  std::string_view bytes;  // in the mapped file
};

// The storage format of a tensor: each block of `elements` consecutive elements of a row takes
// `bytes` bytes.
struct GgufBlock {
  uint32_t number;  // ggml_type
  const char* name;
  uint32_t elements, bytes;
};
const GgufBlock* find_gguf_block(uint32_t number);  // null if the number is unknown

struct GgufTensor {
  std::string name;
  const GgufBlock* block = nullptr;
  // Slowest axis first, as everywhere in fovea; the file has the reverse order.
  std::vector<int64_t> shape;
  const char* data = nullptr;  // in the mapped file
  size_t bytes = 0;
  size_t part = 0;  // index of its file, if a model has several
};

class Gguf {
 public:
  // Opens a file or, if it is a part of a model (NAME-00001-of-0000N.gguf), all parts: the metadata
  // of the first one, and the tensors of all. Throws BadFile, naming the part, if one is missing,
  // the numbers of the parts or of the tensors do not match, or two parts contain the same tensor.
  explicit Gguf(const std::string& path);

  const std::string& path() const { return files_[0]->path(); }  // of the first part
  const std::shared_ptr<const MappedFile>& file() const { return files_[0]; }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }
  const std::vector<GgufValue>& values() const { return values_; }     // sorted by key
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // sorted by name
  const GgufTensor* find_tensor(std::string_view name) const;          // null if there is none

  // Returns the value of a key; empty if the key is missing. Throws BadFile if the value is not of
  // the requested type. Integers of any width are accepted if they fit into int64; number() also
  // accepts integers, and numbers() only f32.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<float>> numbers(std::string_view key) const;
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;
  std::optional<std::string_view> raw(std::string_view key) const;  // an array of u8 or i8

 private:
  const GgufValue* find(std::string_view key) const;
  [[noreturn]] void refuse(const GgufValue& value, const char* expected) const;

  Gguf() = default;
  void read(const std::string& path);  // one file
  void read_parts(const std::string& beginning, int64_t count);

  std::vector<std::shared_ptr<const MappedFile>> files_;  // at least one
  std::vector<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
};

// Returns whether a path ends with ".gguf", or a file begins with "GGUF", as those of caches, which
// have the name of a hash.
bool is_gguf(const std::string& path);

// Metadata to write, in the order of the calls. llama.cpp requires exact types: integers are u32,
// and arrays of integers are i32.
class GgufMetadata {
 public:
  void integer(std::string_view key, uint32_t value);
  void number(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void integers(std::string_view key, const std::vector<int32_t>& values);
  void numbers(std::string_view key, const std::vector<float>& values);
  void booleans(std::string_view key, const std::vector<bool>& values);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void raw(std::string_view key, std::string_view bytes);  // writes an array of u8

  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, GgufType type);
  void begin_array(std::string_view key, GgufType type, size_t count);

  std::string bytes_;
  uint64_t count_ = 0;
};

// Writes a file atomically (base/files.h). `elements`, called once for each tensor in order,
// returns the bytes of the tensor with this index, which must be valid until the next call; the
// `data` of the tensors is not used.
void write_gguf(const std::string& path, const GgufMetadata& metadata,
                const std::vector<GgufTensor>& tensors,
                const std::function<std::string_view(size_t index)>& elements);

// The contents of a file to write; the tensors' elements are not copied.
class GgufImage {
 public:
  GgufImage(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors);
  // Valid during the lifetime of this object and of the elements.
  Pieces pieces() const { return pieces_; }

  GgufImage(const GgufImage&) = delete;
  GgufImage& operator=(const GgufImage&) = delete;

 private:
  std::string header_;
  Pieces pieces_;
};

}  // namespace fovea
