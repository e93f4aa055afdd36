#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "safetensors/safetensors.h"
#include "tensor/host_values.h"

namespace fovea::infer {

// The elements of a tensor of an index: in host memory, usually those of a mapped file. Copies
// share them.
template <class T>
class StoredArray {
 public:
  StoredArray() = default;
  explicit StoredArray(const Tensor& tensor) : tensor_(tensor), all_(tensor.span<T>()) {}
  explicit StoredArray(const std::vector<T>& elements) : StoredArray(vector_tensor(elements)) {}
  // Reads a tensor of a file. Throws BadFile unless it has one axis and elements of the type.
  StoredArray(const SafeTensors& file, const char* name, DType dtype, const std::string& path) {
    const Tensor x = file.tensor(name);
    if (x.dtype() != dtype || x.rank() != 1)
      fail(ErrorKind::BadFile, "{}: {} has another type or number of axes; expected one axis", path,
           name);
    *this = StoredArray(x);
  }

  explicit operator bool() const { return static_cast<bool>(tensor_); }
  const Tensor& tensor() const { return tensor_; }
  std::span<const T> all() const { return all_; }
  int64_t size() const { return std::ssize(all_); }
  const T& operator[](int64_t i) const { return all_[static_cast<size_t>(i)]; }
  // Row i along the last axis, which new vectors are written to.
  T* row(int64_t i) const { return all_.data() + i * (tensor_.rank() == 1 ? 1 : tensor_.dim(1)); }
  int64_t width() const { return tensor_.dim(-1); }

 private:
  Tensor tensor_;
  std::span<T> all_;
};

// The bytes of a text, and lines of text in an array.
StoredArray<uint8_t> stored_text(std::string_view text);
std::string_view text_of(const StoredArray<uint8_t>& bytes);
std::vector<std::string> lines_in(const StoredArray<uint8_t>& bytes);

}  // namespace fovea::infer
