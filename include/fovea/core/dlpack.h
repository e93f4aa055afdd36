#pragma once

// Exchange of tensors in host memory with other libraries, without a copy, by DLPack
// (github.com/dmlc/dlpack), whose header dlpack/dlpack.h it needs: Debian's libdlpack-dev.

#include <dlpack/dlpack.h>

#include <memory>
#include <string>
#include <vector>

#include "fovea/core/error.h"
#include "fovea/core/tensor.h"

namespace fovea {

// Returns x for another library, which calls `deleter` after its last use; x's elements live until
// then. Throws InvalidArgument if x is empty or not in host memory.
inline DLManagedTensor* to_dlpack(const Tensor& x) {
  if (!x || x.device_number() != 0)
    throw Error(ErrorKind::InvalidArgument, "to_dlpack: no tensor in host memory; expected one");
  struct Exported {
    Tensor tensor;
    std::vector<int64_t> shape;
    DLManagedTensor managed;
  };
  const auto type = [&]() -> DLDataType {
    switch (x.dtype()) {
      case DType::f32: return {kDLFloat, 32, 1};
      case DType::f64: return {kDLFloat, 64, 1};
      case DType::f16: return {kDLFloat, 16, 1};
      case DType::bf16: return {kDLBfloat, 16, 1};
      case DType::i32: return {kDLInt, 32, 1};
      case DType::i64: return {kDLInt, 64, 1};
      case DType::i8: return {kDLInt, 8, 1};
      case DType::u8: return {kDLUInt, 8, 1};
    }
    return {};
  }();
  auto owned = std::make_unique<Exported>(Exported{x, {x.shape().begin(), x.shape().end()}, {}});
  DLTensor& to = owned->managed.dl_tensor;
  to.data = x.data();
  to.device = {kDLCPU, 0};
  to.ndim = x.rank();
  to.dtype = type;
  to.shape = owned->shape.data();
  owned->managed.manager_ctx = owned.get();
  owned->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  };
  return &owned.release()->managed;
}

// Returns a tensor that shares the elements of `managed`, and calls its `deleter` after the last
// use. Throws InvalidArgument, and leaves `managed` to the caller, if the elements are not in host
// memory, not contiguous and row-major, or of a type that DType lacks.
inline Tensor from_dlpack(DLManagedTensor* managed) {
  const auto refuse = [](const char* what) -> Tensor {
    throw Error(ErrorKind::InvalidArgument, std::string("from_dlpack: ") + what);
  };
  if (managed == nullptr) return refuse("no tensor; expected one");
  const DLTensor& from = managed->dl_tensor;
  if (from.device.device_type != kDLCPU) return refuse("another device; expected the CPU");
  if (from.ndim < 0 || from.ndim > static_cast<int>(Shape::kMostAxes))
    return refuse("too many axes; expected at most 8");
  const Shape shape(from.shape, from.shape + from.ndim);
  int64_t stride = 1;
  for (int axis = from.ndim - 1; from.strides != nullptr && axis >= 0; --axis) {
    if (from.shape[axis] != 1 && from.strides[axis] != stride)
      return refuse("elements that are not contiguous; expected rows one after another");
    stride *= from.shape[axis];
  }
  const auto is = [&](int code, int bits) {
    return from.dtype.code == code && from.dtype.bits == bits && from.dtype.lanes == 1;
  };
  DType type = DType::f32;
  if (is(kDLFloat, 32))
    type = DType::f32;
  else if (is(kDLFloat, 64))
    type = DType::f64;
  else if (is(kDLFloat, 16))
    type = DType::f16;
  else if (is(kDLBfloat, 16))
    type = DType::bf16;
  else if (is(kDLInt, 32))
    type = DType::i32;
  else if (is(kDLInt, 64))
    type = DType::i64;
  else if (is(kDLInt, 8))
    type = DType::i8;
  else if (is(kDLUInt, 8))
    type = DType::u8;
  else
    return refuse("an unknown type of elements; expected floating-point numbers or integers");
  return borrow(static_cast<char*>(from.data) + from.byte_offset, shape, type,
                std::shared_ptr<const void>(managed, [](DLManagedTensor* last) {
                  if (last->deleter != nullptr) last->deleter(last);
                }));
}

}  // namespace fovea
