#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "fovea/media/image.h"

namespace fovea::python {

// Returns images: each is a path, the bytes of a file, or an array uint8 [height, width, 3].
std::vector<media::Image> images_of(const nanobind::list& given);

}  // namespace fovea::python
