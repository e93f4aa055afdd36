#pragma once

#include <string>

#include "fovea/inspect.h"

namespace fovea::inspector {

// Returns one HTML file that shows this text in this model without a server: all heads of `layer`,
// and those of the other layers, which are thumbnails unless the maps are small. `name` is the
// model's name; `head` is the head that is shown first. Throws InvalidArgument if the text or the
// layer is invalid.
std::string saved_view(const std::string& name, const Model& model, const InspectInput& input,
                       Look look, int64_t layer, int64_t head);

}  // namespace fovea::inspector
