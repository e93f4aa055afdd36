#include "checkpoint/gguf_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/gguf_blocks.h"

namespace fovea::model {
namespace {

std::optional<DType> dtype_of(std::string_view block) {
  if (block == "F32" || decodes_gguf(block)) return DType::f32;
  if (block == "F16") return DType::f16;
  if (block == "BF16") return DType::bf16;
  return std::nullopt;
}

}  // namespace

GgufTensors::GgufTensors(const std::shared_ptr<const Gguf>& file) : files_(file->files()) {
  add(file->tensors());
}

GgufTensors::GgufTensors(const GgmlFile& file) : files_{file.file()} { add(file.tensors()); }

void GgufTensors::add(const std::vector<GgufTensor>& tensors) {
  for (const GgufTensor& tensor : tensors) {
    stored_.push_back({tensor.name, tensor.block->name, dtype_of(tensor.block->name),
                       Shape(tensor.shape.begin(), tensor.shape.end()), tensor.data, tensor.bytes,
                       tensor.part});
  }
}

void GgufTensors::add_zeros(const std::string& name, const Shape& shape) {
  const auto after = std::lower_bound(stored_.begin(), stored_.end(), name,
                                      [](auto& a, auto& b) { return a.name < b; });
  stored_.insert(after, {name, "F32", DType::f32, shape, nullptr, 0, 0});
}

Tensor GgufTensors::tensor(std::string_view name) const {
  const StoredTensor* stored = find(name);
  if (stored == nullptr) {
    fail(ErrorKind::BadFile, "{}: tensor {} is missing; expected it among the {} tensors",
         files_[0]->path(), name, stored_.size());
  }
  if (!stored->dtype) {
    fail(ErrorKind::Unsupported, "{}: {} is stored as {}; expected F32, F16, BF16, {}",
         files_[0]->path(), name, stored->type, gguf_format_names());
  }
  if (stored->data == nullptr) return full(stored->shape, 0);
  const bool plain = !decodes_gguf(stored->type);
  if (plain && reinterpret_cast<uintptr_t>(stored->data) % size_of(*stored->dtype) == 0)
    return borrow(const_cast<char*>(stored->data), stored->shape, *stored->dtype,
                  files_[stored->file]);
  Tensor values = empty(stored->shape, *stored->dtype);
  if (plain)
    std::copy_n(stored->data, stored->bytes, values.data_as<char>());
  else
    decode_gguf(stored->type, stored->data, values.size(), values.data_as<float>());
  return values;
}

}  // namespace fovea::model
