#include "kernels/device.h"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "base/error.h"
#include "kernels/cpu/allocator.h"

namespace fovea {
namespace {

constexpr size_t kMostDevices = 16;

// Devices are only added, so that a reference to one remains valid.
struct Registry {
  std::mutex mutex;
  std::array<Device, kMostDevices> devices;
  std::atomic<size_t> count = 1;

  Registry() {
    devices[0] = {.name = "cpu",
                  .kernels = kernels_for,
                  .allocate = [](size_t& bytes) { return Allocator::all().allocate(bytes); },
                  .free = [](void* block, size_t bytes) { Allocator::all().free(block, bytes); },
                  .copy = [](void* to, const void* from, size_t bytes,
                             CopyKind) { std::memcpy(to, from, bytes); }};
  }

  const Device* find(std::string_view name) const {
    for (size_t i = 0; i < count; ++i)
      if (name == devices[i].name) return &devices[i];
    return nullptr;
  }

  static Registry& instance() {
    static auto* const registry =
        new Registry;  // never destroyed: static tensors may be freed last
    return *registry;
  }
};

}  // namespace

const Device& add_device(Device device) {
  Registry& all = Registry::instance();
  const std::lock_guard lock(all.mutex);
  check(all.find(device.name) == nullptr, "device: {} is in use; expected another name",
        device.name);
  check(all.count < kMostDevices, "device: {} is one too many; expected at most {}", device.name,
        kMostDevices);
  device.number = static_cast<uint8_t>(all.count);
  Device& added = all.devices[all.count] = device;
  ++all.count;
  return added;
}

const Device& device_named(std::string_view name) {
  const Registry& all = Registry::instance();
  if (const Device* found = all.find(name)) return *found;
  std::string names;
  for (size_t i = 0; i < all.count; ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", all.devices[i].name);
  fail(ErrorKind::InvalidArgument, "device: '{}' is not known; expected {}", name, names);
}

const Device& device_of(uint8_t number) { return Registry::instance().devices[number]; }
const Device& cpu_device() { return device_of(0); }

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
