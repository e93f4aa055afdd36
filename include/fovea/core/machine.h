#pragma once

#include <string>

namespace fovea {

// Sets the number of compute threads, instead of OMP_NUM_THREADS or the number of available CPUs.
// Throws InvalidArgument if `count` is less than 1. Waits for the computations in progress, so it
// must not be called inside one. Applies to all computations that begin afterwards, on any thread.
void set_threads(int count);
// Returns the number of compute threads: the count that was set, otherwise OMP_NUM_THREADS,
// otherwise the number of CPUs that the CPU affinity and the cgroup's quota allow; at most 1024,
// and at most the number of threads that the process can start.
int thread_count();

// Returns the instruction set of the kernels, such as "avx512", or "reference": a value of
// FOVEA_ISA.
std::string instruction_set();
// Returns the CPU features that fovea needs and this CPU lacks; empty = none.
std::string missing_cpu_features();

// Sets the device of the models that are opened, created for training or resumed from now on: "cpu"
// (the default); "cuda", the first NVIDIA GPU, or "cuda:1" and so on; "cuda-model", a model of such
// a GPU, for tests. A process can use one GPU. Throws InvalidArgument for another name, and
// Unsupported if this machine or this build has no such device.
void use_device(const std::string& name);
std::string device_in_use();

std::string version();  // "0.2.0"

}  // namespace fovea
