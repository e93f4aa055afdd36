#pragma once

#include <string_view>

#include "fovea/media/image.h"

namespace fovea::media {

// Returns the Orientation (tag 0x0112) of the first directory of EXIF data, which begins with "II"
// or "MM"; 1 if there is none or the data is damaged. No offset but that of this directory is
// followed, so that damaged data cannot form cycles.
int exif_orientation(std::string_view tiff);

// Returns the image, turned as EXIF's orientation 1 to 8 says.
Image turned(Image image, int orientation);

}  // namespace fovea::media
