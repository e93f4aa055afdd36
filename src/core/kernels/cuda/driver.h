#pragma once

// The functions of NVIDIA's driver that the device "cuda" uses, from libcuda.so.1, which is loaded
// at the first use: neither the build nor a machine without a GPU needs anything of CUDA. Names and
// types are those of the driver's documentation.

#include <cstddef>
#include <cstdint>
#include <string>

namespace fovea::cuda {

using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUresult = int;
using CUcontext = struct CUctx*;
using CUmodule = struct CUmod*;
using CUfunction = struct CUfunc*;
using CUstream = struct CUstr*;
using CUevent = struct CUev*;

inline constexpr CUresult kOutOfMemory = 2;
inline constexpr int kComputeMajor = 75, kComputeMinor = 76;  // attributes of a device
inline constexpr int kMostSharedBytes = 8;                    // an attribute of a function

struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuDriverGetVersion)(int* version);
  CUresult (*cuDeviceGetCount)(int* count);
  CUresult (*cuDeviceGet)(CUdevice* device, int ordinal);
  CUresult (*cuDeviceGetName)(char* name, int length, CUdevice device);
  CUresult (*cuDeviceGetAttribute)(int* value, int attribute, CUdevice device);
  CUresult (*cuDeviceTotalMem)(size_t* bytes, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);
  CUresult (*cuCtxSetCurrent)(CUcontext context);
  CUresult (*cuMemGetInfo)(size_t* free, size_t* total);
  CUresult (*cuMemAlloc)(CUdeviceptr* block, size_t bytes);
  CUresult (*cuMemFree)(CUdeviceptr block);
  CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  CUresult (*cuStreamCreate)(CUstream* stream, unsigned flags);
  CUresult (*cuStreamSynchronize)(CUstream stream);
  CUresult (*cuMemAllocManaged)(CUdeviceptr* block, size_t bytes, unsigned flags);
  CUresult (*cuMemAllocHost)(void** block, size_t bytes);
  CUresult (*cuEventCreate)(CUevent* event, unsigned flags);
  CUresult (*cuEventRecord)(CUevent event, CUstream stream);
  CUresult (*cuEventSynchronize)(CUevent event);
  CUresult (*cuModuleLoadData)(CUmodule* module, const void* image);
  CUresult (*cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*cuFuncSetAttribute)(CUfunction function, int attribute, int value);
  CUresult (*cuLaunchKernel)(CUfunction function, unsigned blocks_x, unsigned blocks_y,
                             unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                             unsigned threads_z, unsigned shared_bytes, CUstream stream,
                             void** parameters, void** extra);
  CUresult (*cuGetErrorString)(CUresult result, const char** text);
};

// Returns the driver; null if this machine has none. Loads it once.
const Driver* driver();

// Throws OutOfMemory or Failed, naming the function, if the result is an error.
void check_result(CUresult result, const char* function);

}  // namespace fovea::cuda
