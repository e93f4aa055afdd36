#pragma once

#include <string>

#include "inspect/trace.h"

namespace fovea::study {

// Writes arrays as numpy.savez does: an uncompressed zip archive with a .npy file for each, fp32 or
// int32. Equal tensors give equal bytes. Throws InvalidArgument if the archive exceeds 4 GiB.
void write_npz(const std::string& path, const TraceTensors& tensors);

}  // namespace fovea::study
