#pragma once

#include <string>

#include "fovea/inspect.h"

namespace fovea::inspector {

// Returns one HTML file that shows this text in this model without a server. It contains the maps
// of all heads of `layer`; the maps of the other layers are thumbnails, unless all maps are small.
// `name` is the model's name; `layer` and `head` are shown first. Throws InvalidArgument if the
// text is invalid.
std::string saved_view(const std::string& name, const Model& model, const InspectInput& input,
                       AttentionKind kind, int64_t layer, int64_t head);

}  // namespace fovea::inspector
