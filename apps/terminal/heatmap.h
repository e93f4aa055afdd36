#pragma once

#include <string>
#include <vector>

#include "fovea/inspect.h"

namespace fovea::cli {

enum class Shades { colours, blocks, digits };  // 256 colours, U+2591 to U+2588, 0 to 9

// One head's attention for a terminal of `width` columns: rows are queries. Keys that do not fit
// are taken together, and the largest weight of each square is shown.
std::string draw_heatmap(const Map& map, const std::vector<std::string>& rows,
                         const std::vector<std::string>& keys, int width, Shades shades);

// The same as a drawing that stands alone.
std::string draw_svg(const Map& map, const std::vector<std::string>& rows,
                     const std::vector<std::string>& keys, const std::string& title);

}  // namespace fovea::cli
