#include <charconv>
#include <string_view>

#include "base/error.h"
#include "fovea/core/machine.h"
#include "kernels/cuda/cuda.h"
#include "kernels/device.h"

namespace fovea {
namespace {

constexpr std::string_view kGpu = "cuda", kGpuNumber = "cuda:";

const Device& device_of(const std::string& name) {
  if (name == cpu_device().name) return cpu_device();
  if (name == "cuda-model") return cuda_model_device();
  if (name == kGpu) return cuda_device();
  if (name.starts_with(kGpuNumber)) {
    int number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kGpuNumber.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0) return cuda_device(number);
  }
  fail(ErrorKind::InvalidArgument, "device: '{}'; expected cpu, cuda, or cuda:1 and so on", name);
}

}  // namespace

void use_device(const std::string& name) { set_default_device(device_of(name)); }
std::string device_in_use() { return default_device().name; }

}  // namespace fovea
