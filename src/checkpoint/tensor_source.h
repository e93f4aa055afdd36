#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// One tensor of a file, as its header tells.
struct StoredTensor {
  std::string name;
  std::string_view type;       // as the format spells it: "F32", "BF16", "F8_E4M3", "Q4_K", ...
  std::optional<DType> dtype;  // absent: a valid type that fovea does not compute on
  Shape shape;
  const char* data = nullptr;  // in the mapping; any alignment
  size_t bytes = 0;
  size_t file = 0;  // index into the files of a model in several
};

// The named tensors of a checkpoint, whatever its format.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::vector<StoredTensor>& stored() const = 0;  // sorted by name
  // Borrowed from the file where it holds the elements as they are. BadFile if missing, Unsupported
  // for its type.
  virtual Tensor tensor(std::string_view name) const = 0;

  // A tensor is done with: what of it was read may stop counting as this process's memory.
  virtual void release(const StoredTensor&) const {}

  // Null where there is none.
  const StoredTensor* find(std::string_view name) const {
    const auto& all = stored();
    const auto found =
        std::lower_bound(all.begin(), all.end(), name,
                         [](const StoredTensor& a, std::string_view b) { return a.name < b; });
    return found != all.end() && found->name == name ? &*found : nullptr;
  }
};

}  // namespace fovea
