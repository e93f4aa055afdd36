#pragma once

#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "fovea/study/inspect.h"

namespace fovea::python {

using TextOrIds = std::variant<std::string, std::vector<int32_t>>;
using Heads = std::vector<std::tuple<std::string, int64_t, int64_t>>;  // (kind, layer, head)

study::InspectInput input_of(const TextOrIds& text, const TextOrIds& target, const Heads& muted);

}  // namespace fovea::python
