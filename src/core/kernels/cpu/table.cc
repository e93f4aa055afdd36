#include "kernels/cpu/cpu.h"

namespace fovea {

namespace {

const Kernels kTable = {
    .device = "cpu",
#define KERNEL(name, ...) .name = cpu::name,
#include "kernels/entries.inc"
#undef KERNEL
};

}  // namespace

const Kernels& cpu_kernels() { return kTable; }

}  // namespace fovea
