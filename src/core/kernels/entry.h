#pragma once

// The arrays that a kernel receives, and the entries of a device's table. An entry can be called
// only with the arrays of one device, and only if the table has it; both are checked by each call.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace fovea {

class Tensor;

// Arrays carry the number of their device (device.h); 0 is the CPU.
struct In {
  const void* data = nullptr;  // null if an optional input is not given
  DType dtype = DType::f32;
  uint8_t device = 0;

  In() = default;
  constexpr In(const void* elements, DType type, uint8_t on = 0)
      : data(elements), dtype(type), device(on) {}
  In(const float* x) : data(x) {}  // NOLINT: f32 in host memory
  In(const Tensor& x);             // NOLINT: kernels take tensors; see tensor/tensor.h
};

struct Out {
  void* data = nullptr;  // null if the result is not requested
  DType dtype = DType::f32;
  bool add = false;  // += instead of =
  uint8_t device = 0;

  Out() = default;
  constexpr Out(void* elements, DType type, bool adds = false, uint8_t on = 0)
      : data(elements), dtype(type), add(adds), device(on) {}
  Out(float* y) : data(y) {}  // NOLINT: f32 in host memory
  Out(const Tensor& y);       // NOLINT
};

// Returns the elements of an i32 result.
inline int32_t* indices_in(Out y) { return static_cast<int32_t*>(y.data); }

// Token ids, rows or targets: i32.
struct Indices {
  const int32_t* data = nullptr;
  uint8_t device = 0;

  Indices(const int32_t* indices, uint8_t on = 0) : data(indices), device(on) {}
  Indices(const Tensor& x);                         // NOLINT
  operator const int32_t*() const { return data; }  // NOLINT: kernels index the array
};

[[noreturn]] void refuse_missing_entry(const char* name, const char* device);
[[noreturn]] void refuse_devices(const char* name, uint8_t one, uint8_t other);

// The device of the arrays of one call. Arguments of other types are in host memory.
class DeviceOfCall {
 public:
  explicit DeviceOfCall(const char* name) : name_(name) {}

  void meet(const In& x) { meet(x.data, x.device); }
  void meet(const Out& y) { meet(y.data, y.device); }
  void meet(const Indices& indices) { meet(indices.data, indices.device); }
  template <class Item>
  void meet(std::span<const Item> items) {
    for (const Item& item : items) meet(item);
  }
  template <class Other>
  void meet(const Other& other) {
    if constexpr (requires { other.show_arrays(*this); }) other.show_arrays(*this);
  }

 private:
  void meet(const void* data, uint8_t device) {
    if (data == nullptr) return;
    if (known_ && device != device_) refuse_devices(name_, device_, device);
    known_ = true;
    device_ = device;
  }

  const char* name_;
  bool known_ = false;
  uint8_t device_ = 0;
};

// The name of an entry, as a template argument.
template <size_t size>
struct KernelName {
  char text[size] = {};
  constexpr KernelName(const char (&name)[size]) {  // NOLINT: a string literal is the argument
    std::copy_n(name, size, text);
  }
};

template <KernelName name, class F>
class Kernel;

// A function of a device's table. Calling it throws Unsupported if the device lacks it, and
// InvalidArgument if the arrays are on different devices.
template <KernelName name, class Result, class... Args>
class Kernel<name, Result(Args...)> {
 public:
  using Function = Result(Args...);

  explicit Kernel(const char* device) : device_(device) {}  // an entry that `device` lacks
  template <std::convertible_to<Function*> F>
  Kernel(F function) : function_(function) {}  // NOLINT: tables list functions
  Kernel(std::nullptr_t) = delete;

  Result operator()(Args... args) const {
    if (function_ == nullptr) refuse_missing_entry(name.text, device_);
    DeviceOfCall call(name.text);
    (call.meet(args), ...);
    return function_(args...);
  }

 private:
  Function* function_ = nullptr;
  const char* device_ = "";
};

}  // namespace fovea
