#pragma once

#include <string>
#include <vector>

#include "fovea/core/array.h"

namespace fovea::cli {

enum class Shades { colours, blocks, digits };  // 256 colours; shade characters; digits 0 to 9

// Truncates or pads the text of a token to `most` characters. Spaces become '_', newlines '\\' and
// other control characters '?'.
std::string token_label(const std::string& token, size_t most);

// Draws one head's attention weights, of the queries `rows` and the keys `keys`, in `width`
// terminal columns. If the keys do not fit, each cell shows the largest weight of a square of the
// map.
std::string draw_heatmap(const ArrayView& map, const std::vector<std::string>& rows,
                         const std::vector<std::string>& keys, int width, Shades shades);

// Draws the same map as a standalone SVG image.
std::string draw_svg(const ArrayView& map, const std::vector<std::string>& rows,
                     const std::vector<std::string>& keys, const std::string& title);

}  // namespace fovea::cli
