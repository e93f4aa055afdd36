#include "lab/conclude.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::lab {

Conclusion conclude(const std::string& claim, const std::vector<Case>& cases,
                    const std::string& numbers) {
  const auto named = [&](Outcome outcome) {
    std::vector<std::string> names;
    for (const Case& one : cases)
      if (one.outcome == outcome) names.push_back(one.name);
    return names;
  };
  const std::vector<std::string> hold = named(Outcome::holds), fail = named(Outcome::fails),
                                 open = named(Outcome::undecided);
  const Verdict verdict = hold.size() == cases.size()   ? Verdict::held
                          : !hold.empty()               ? Verdict::holds_only_if
                          : fail.size() == cases.size() ? Verdict::did_not_hold
                                                        : Verdict::undecided;
  std::string sentence = name_of(verdict);
  if (!hold.empty() && verdict != Verdict::held)
    sentence += fmt::format(": {}", fmt::join(hold, ", "));
  if (!open.empty() && cases.size() > 1)
    sentence += fmt::format("{}: {}", hold.empty() ? "" : "; undecided", fmt::join(open, ", "));
  if (!fail.empty() && verdict == Verdict::undecided)
    sentence += fmt::format("; did not hold: {}", fmt::join(fail, ", "));
  return {claim, verdict, fmt::format("{} ({})", sentence, numbers)};
}

std::string compared(const LabPoint& a, const LabPoint& b) {
  return fmt::format("{} at {}: {} against {}, {} times", a.series, a.x, number_text(a.mean),
                     number_text(b.mean), number_text(ratio(a, b)));
}

std::string course(const Table& table, const std::string& series) {
  std::vector<std::string> parts;
  for (const double x : table.x_values(series))
    parts.push_back(fmt::format("{} at {}", number_text(table.at(series, x).mean), x));
  return fmt::format("{}: {}", series, fmt::join(parts, ", "));
}

}  // namespace fovea::lab
