#include "kernels/cuda/driver.h"

#include <dlfcn.h>

#include "base/error.h"

namespace fovea::cuda {
namespace {

// Sets a member to the function of its name. `version`: the suffix of its current version.
template <class F>
bool find(void* library, F& function, const char* name, const char* version = "") {
  function = reinterpret_cast<F>(dlsym(library, (std::string(name) + version).c_str()));
  return function != nullptr;
}

bool find_all(void* library, Driver& d) {
#define FIND(name, ...) find(library, d.name, #name __VA_OPT__(, ) __VA_ARGS__)
  return FIND(cuInit) && FIND(cuDriverGetVersion) && FIND(cuDeviceGetCount) && FIND(cuDeviceGet) &&
         FIND(cuDeviceGetName) && FIND(cuDeviceGetAttribute) && FIND(cuDeviceTotalMem, "_v2") &&
         FIND(cuDevicePrimaryCtxRetain) && FIND(cuCtxSetCurrent) && FIND(cuMemGetInfo, "_v2") &&
         FIND(cuMemAlloc, "_v2") && FIND(cuMemFree, "_v2") && FIND(cuMemcpyHtoDAsync, "_v2") &&
         FIND(cuMemcpyDtoHAsync, "_v2") && FIND(cuMemcpyDtoDAsync, "_v2") && FIND(cuStreamCreate) &&
         FIND(cuStreamSynchronize) && FIND(cuMemAllocManaged) && FIND(cuMemAllocHost, "_v2") &&
         FIND(cuEventCreate) && FIND(cuEventRecord) && FIND(cuEventSynchronize) &&
         FIND(cuModuleLoadData) && FIND(cuModuleGetFunction) && FIND(cuFuncSetAttribute) &&
         FIND(cuLaunchKernel) && FIND(cuGetErrorString);
#undef FIND
}

}  // namespace

const Driver* driver() {
  static const Driver* const found = []() -> const Driver* {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    static Driver functions;
    if (library == nullptr || !find_all(library, functions)) return nullptr;
    return functions.cuInit(0) == 0 ? &functions : nullptr;
  }();
  return found;
}

void check_result(CUresult result, const char* function) {
  if (result == 0) return;
  const char* text = nullptr;
  driver()->cuGetErrorString(result, &text);
  fail(result == kOutOfMemory ? ErrorKind::OutOfMemory : ErrorKind::Failed,
       "cuda: {}: {}; expected success", function, text != nullptr ? text : "unknown error");
}

}  // namespace fovea::cuda
