#include "lab/conclude.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::lab {

Conclusion conclude(const std::string& claim, const std::vector<Case>& cases,
                    const std::string& numbers) {
  std::vector<std::string> names;
  for (const Case& one : cases)
    if (one.holds) names.push_back(one.name);
  const bool all = names.size() == cases.size();
  const Verdict verdict = all             ? Verdict::held
                          : names.empty() ? Verdict::did_not_hold
                                          : Verdict::holds_only_if;
  std::string sentence = name_of(verdict);
  if (verdict == Verdict::holds_only_if) sentence += fmt::format(": {}", fmt::join(names, ", "));
  return {claim, verdict, fmt::format("{} ({})", sentence, numbers)};
}

std::string compared(const LabPoint& a, const LabPoint& b) {
  return fmt::format("{} at {}: {} against {}, {} times", a.series, a.x, number_text(a.mean),
                     number_text(b.mean), number_text(ratio(a, b)));
}

std::string course(const Table& table, const std::string& series) {
  std::vector<std::string> parts;
  for (const double x : table.places(series))
    parts.push_back(fmt::format("{} at {}", number_text(table.at(series, x).mean), x));
  return fmt::format("{}: {}", series, fmt::join(parts, ", "));
}

}  // namespace fovea::lab
