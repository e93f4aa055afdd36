#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// A tensor in a pickle of torch: a view of a storage, whose elements are in another file.
struct PickledTensor {
  std::string storage;             // its name
  DType dtype = DType::f32;        // f32, f16 or bf16
  int64_t elements = 0;            // of the storage
  int64_t offset = 0;              // of the first element
  Shape shape = {}, strides = {};  // of as many axes
};

// Returns the tensors of an untrusted pickle of a state dict, by their names. It runs nothing: only
// the instructions (docs.python.org/3/library/pickletools.html) are known that torch.save() writes
// for an OrderedDict of tensors, and only the names collections.OrderedDict,
// torch._utils._rebuild_tensor_v2 and torch.FloatStorage, HalfStorage and BFloat16Storage. Throws
// BadFile if it is damaged, and Unsupported, with the name, for anything else. Errors begin with
// `path`.
std::map<std::string, PickledTensor> tensors_in_pickle(std::string_view pickle,
                                                       const std::string& path);

}  // namespace fovea
