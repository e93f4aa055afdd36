#pragma once

#include <string>

#include "lab/experiment.h"

namespace fovea::lab {

// Writes result.json, table.md and chart.svg to result.out.
void write_report(const LabResult& result, const Experiment& experiment);

std::string table_text(const LabResult& result);  // Markdown
// Draws the series over the axis, with their intervals, as an SVG.
std::string line_chart(const LabResult& result, bool logarithmic);

}  // namespace fovea::lab
