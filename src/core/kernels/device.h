#pragma once

// A device: memory for tensors, and kernels that compute in it. docs/add-a-device.md describes what
// a device must bring.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/kernels.h"

namespace fovea {

enum class CopyKind : uint8_t { to_device, to_host, within };

struct Device {
  const char* name = "";
  // Returns the table for tensors of `dtype`; throws Unsupported if there is none.
  const Kernels& (*kernels)(DType dtype) = nullptr;
  // Allocates at least `bytes`, aligned to 64 bytes, and sets `bytes` to the block's actual size.
  // Throws OutOfMemory if there is no memory.
  void* (*allocate)(size_t& bytes) = nullptr;
  void (*free)(void* block, size_t bytes) = nullptr;
  // Copies between the memory of the device and of the host, or within the device, after the
  // kernels that were called before. Bytes in host memory are there, or may change, when it
  // returns; a copy within the device may be queued, like a kernel (entries.inc).
  void (*copy)(void* to, const void* from, size_t bytes, CopyKind kind) = nullptr;
  uint8_t number = 0;  // set by add_device()
};

inline constexpr size_t kMostDevices = 16;
extern Device devices[kMostDevices];  // by number

inline const Device& device_of(uint8_t number) { return devices[number]; }
// The first device. Its memory is that of the host; its kernels are those of use_isa().
const Device& cpu_device();
// Registers a device, for the lifetime of the process. Throws InvalidArgument if the name is in
// use.
const Device& add_device(Device device);
const Device& device_named(std::string_view name);  // throws InvalidArgument if there is none
std::string_view name_of(const Device& device);
// Returns a line about each GPU of this machine, or one line with the reason if it has no GPU.
std::vector<std::string> describe_gpus();
// The device of new models; at first the CPU. See use_device() of fovea/core/machine.h.
const Device& default_device();
void set_default_device(const Device& device);
// Throws Unsupported if the device of new models is not the CPU. `what`: the computation.
void require_cpu(const char* what);

}  // namespace fovea
