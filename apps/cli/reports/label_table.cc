#include "cli/reports/label_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr size_t kMostRows = 50, kMostColumns = 10;
constexpr size_t kWidest = 30;  // of the names of labels, in characters

// Returns the name, at most kWidest characters of it, filled up with spaces.
std::string cell(const std::string& name, size_t width) {
  const std::string text = printable(name);
  return fmt::format("{:<{}.{}}", text, width, width);
}

std::string confusion_table(const infer::LabelReport& report, size_t width) {
  std::string out = "\n" + cell("label \\ predicted", width);
  for (const infer::LabelScores& label : report.labels)
    out += fmt::format("{:>10.9}", printable(label.name));
  out += '\n';
  for (size_t i = 0; i < report.labels.size(); ++i) {
    out += cell(report.labels[i].name, width);
    for (const int64_t count : report.confusion[i]) out += fmt::format("{:>10}", count);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string label_table(const infer::LabelReport& report) {
  size_t width = 15;  // that of the other rows
  for (const infer::LabelScores& label : report.labels)
    width = std::max(width, std::min(label.name.size(), kWidest) + 2);
  std::string out =
      "\n" + cell("label", width) +
      fmt::format("{:>10}{:>10}{:>10}{:>10}\n", "precision", "recall", "F1", "support");
  const size_t shown = std::min(report.labels.size(), kMostRows);
  for (size_t i = 0; i < shown; ++i) {
    const infer::LabelScores& label = report.labels[i];
    out += cell(label.name, width) + fmt::format("{:>10.4f}{:>10.4f}{:>10.4f}{:>10}\n",
                                                 label.precision, label.recall, label.f1,
                                                 label.support);
  }
  if (shown < report.labels.size())
    out += fmt::format("({} more labels: --json)\n", report.labels.size() - shown);
  if (!report.confusion.empty() && report.labels.size() <= kMostColumns)
    out += confusion_table(report, std::max<size_t>(width, 19));
  return out;
}

}  // namespace fovea::cli
