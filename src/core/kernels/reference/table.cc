#include "kernels/reference/reference.h"

namespace fovea {

namespace {

const Kernels kTable = {
    .device = "reference",
#define KERNEL(name, ...) .name = reference::name,
#include "kernels/entries.inc"
#undef KERNEL
};

}  // namespace

const Kernels& reference_kernels() { return kTable; }

}  // namespace fovea
