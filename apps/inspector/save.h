#pragma once

#include <string>

#include "fovea/study/inspect.h"

namespace fovea::inspector {

// Returns one HTML file that shows this text in this model without a server. It contains the maps
// of all heads of the layer of `head`; the maps of the other layers are thumbnails, unless all
// maps are small. `name` is the model's name; the head at `head` is shown first. Throws
// InvalidArgument if the text is invalid or if there is no head at `head`.
std::string saved_view(const std::string& name, const model::Model& model,
                       const study::InspectInput& input, const model::HeadIndex& head);

}  // namespace fovea::inspector
