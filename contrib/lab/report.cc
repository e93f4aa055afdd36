#include "lab/report.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "lab/result_file.h"
#include "lab/table.h"

namespace fovea::lab {

std::string table_text(const LabResult& result) {
  std::set<double> x_values;
  Table table;
  for (const LabPoint& p : result.points) {
    x_values.insert(p.x);
    for (const double y : p.values) table.add(p.series, p.x, p.learning_rate, y);
  }
  table.finish();
  std::string text =
      fmt::format("{}, by {}; mean +- half of the 95% interval\n\n| {} |", result.experiment.metric,
                  result.experiment.axis, result.experiment.axis);
  const std::vector<std::string> series = table.series();
  for (const std::string& name : series) text += fmt::format(" {} |", name);
  text += "\n|---|";
  for (size_t i = 0; i < series.size(); ++i) text += "---|";
  for (const double x : x_values) {
    text += fmt::format("\n| {} |", x);
    for (const std::string& name : series) {
      const std::vector<double> own = table.x_values(name);
      const bool has = std::find(own.begin(), own.end(), x) != own.end();
      text += has ? fmt::format(" {} |", text_of(table.at(name, x))) : " |";
    }
  }
  return text + "\n";
}

void write_report(const LabResult& result, const Experiment& experiment) {
  write_file_atomically(result.out + "/result.json", result_text(result));
  write_file_atomically(result.out + "/table.md", table_text(result));
  write_file_atomically(result.out + "/chart.svg", line_chart(result, experiment.logarithmic));
}

}  // namespace fovea::lab
