#include "kernels/device.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "base/error.h"
#include "kernels/allocator.h"

namespace fovea {
namespace {

// Devices are only added, so that a reference to one remains valid.
std::mutex adding;
std::atomic<size_t> device_count = 1;
std::atomic<const Device*> chosen = nullptr;

const Device* find(std::string_view name) {
  for (size_t i = 0; i < device_count; ++i)
    if (name == devices[i].name) return &devices[i];
  return nullptr;
}

}  // namespace

// Initialised before the constructors of other static objects.
constinit Device devices[kMostDevices] = {
    {.name = "cpu",
     .kernels = kernels_for,
     .allocate = [](size_t& bytes) { return Allocator::all().allocate(bytes); },
     .free = [](void* block, size_t bytes) { Allocator::all().free(block, bytes); },
     .copy = [](void* to, const void* from, size_t bytes,
                CopyKind) { std::memcpy(to, from, bytes); }}};

const Device& cpu_device() { return devices[0]; }
std::string_view name_of(const Device& device) { return device.name; }

const Device& default_device() {
  const Device* const found = chosen;
  return found != nullptr ? *found : cpu_device();
}
void set_default_device(const Device& device) { chosen = &device; }

void require_cpu(const char* what) {
  if (&default_device() != &cpu_device())
    fail(ErrorKind::Unsupported, "{}: not supported on device {}; expected cpu", what,
         default_device().name);
}

const Device& add_device(Device device) {
  const std::lock_guard lock(adding);
  check(find(device.name) == nullptr, "device: {} is in use; expected another name", device.name);
  check(device_count < kMostDevices, "device: {} is one too many; expected at most {}", device.name,
        kMostDevices);
  device.number = static_cast<uint8_t>(device_count);
  Device& added = devices[device_count] = device;
  ++device_count;
  return added;
}

const Device& device_named(std::string_view name) {
  if (const Device* found = find(name)) return *found;
  std::string names;
  for (size_t i = 0; i < device_count; ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", devices[i].name);
  fail(ErrorKind::InvalidArgument, "device: '{}' is not known; expected {}", name, names);
}

void refuse_missing_entry(const char* name, const char* device) {
  fail(ErrorKind::Unsupported,
       "{}: device {} has no kernel for it; expected a device that has one, such as cpu", name,
       device);
}

void refuse_devices(const char* name, uint8_t one, uint8_t other) {
  fail(ErrorKind::InvalidArgument,
       "{}: inputs are on devices {} and {}; expected all on one (see Tensor::to)", name,
       device_of(one).name, device_of(other).name);
}

}  // namespace fovea
