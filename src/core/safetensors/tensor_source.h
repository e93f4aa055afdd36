#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "tensor/tensor.h"

namespace fovea {

// One tensor of a file, as described in the file's header.
struct StoredTensor {
  std::string name;
  std::string_view type;       // the format's name: "F32", "BF16", "F8_E4M3", "Q4_K", ...
  std::optional<DType> dtype;  // unset: a valid type that fovea does not support
  Shape shape;
  const char* data = nullptr;  // in the mapping, at any alignment
  size_t bytes = 0;
  size_t file = 0;                  // index of its file, for a model in several files
  const char* exponents = nullptr;  // of MXFP4 blocks that are stored without them

  // Returns whether the elements of `value` are those of the file, not copies.
  bool contains(const Tensor& value) const {
    const auto* at = static_cast<const char*>(value.data());
    return at >= data && at < data + bytes;
  }
};

// The named tensors of a checkpoint in any format.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::vector<StoredTensor>& stored() const = 0;  // sorted by name
  // Returns a tensor, borrowed from the file if the elements need no conversion. Throws BadFile if
  // the tensor is missing, Unsupported if fovea does not support its type.
  virtual Tensor tensor(std::string_view name) const = 0;

  // Returns the file that contains the tensor.
  virtual std::shared_ptr<const MappedFile> file_of(const StoredTensor& stored) const = 0;
  // Releases the memory of the file's pages that hold the tensor; they can be read again.
  void release(const StoredTensor& stored) const {
    file_of(stored)->release(stored.data, stored.bytes);
  }

  // Returns null if there is no such tensor.
  const StoredTensor* find(std::string_view name) const {
    const auto& all = stored();
    const auto found =
        std::lower_bound(all.begin(), all.end(), name,
                         [](const StoredTensor& a, std::string_view b) { return a.name < b; });
    return found != all.end() && found->name == name ? &*found : nullptr;
  }
};

}  // namespace fovea
