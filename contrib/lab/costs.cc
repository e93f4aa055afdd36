#include "lab/costs.h"

#include "base/error.h"
#include "lab/conclude.h"

namespace fovea::lab {
namespace {

constexpr const char* kCells[] = {"rnn", "gru", "lstm"};

// Returns the largest length up to which attention is cheaper at every length; 0 = none. `least` is
// the outcome that counts as cheaper.
double cheaper_until(const Table& table, const std::string& cell, const std::string& suffix,
                     Outcome least) {
  double last = 0;
  for (const double n : table.x_values(cell + suffix)) {
    if (above(table.at(cell + suffix, n), table.at("attention" + suffix, n)) < least) break;
    last = n;
  }
  return last;
}

// Whether the crossover is near the width, if it lies between two lengths.
Outcome near_width(double from, double to, double width) {
  if (from >= width / 2 && to <= 2 * width) return Outcome::holds;
  return to < width / 2 || from > 2 * width ? Outcome::fails : Outcome::undecided;
}

}  // namespace

Conclusion conclude_ratio(const std::string& claim, const Table& table, const std::string& suffix,
                          double factor) {
  std::vector<Case> cases;
  std::vector<std::string> numbers;
  for (const std::string cell : kCells) {
    for (const double length : table.x_values(cell + suffix)) {
      const LabPoint &theirs = table.at(cell + suffix, length),
                     &ours = table.at("attention" + suffix, length);
      cases.push_back(
          {fmt::format("against {} with {} tokens", cell, length), above(theirs, ours, factor)});
      numbers.push_back(
          fmt::format("{} at {}: {} times", cell, length, number_text(ratio(theirs, ours))));
    }
  }
  return conclude(claim, cases, fmt::format("{}", fmt::join(numbers, ", ")));
}

Conclusion conclude_crossover(const std::string& claim, const Table& table,
                              const std::string& suffix, double width) {
  std::vector<Case> cases;
  std::vector<std::string> numbers;
  for (const std::string cell : kCells) {
    const double from = cheaper_until(table, cell, suffix, Outcome::holds),
                 to = cheaper_until(table, cell, suffix, Outcome::undecided);
    cases.push_back({"the recurrence is " + cell, near_width(from, to, width)});
    numbers.push_back(
        fmt::format("cheaper than {} up to n = {}", cell,
                    from == to ? number_text(to) : number_text(from) + " or " + number_text(to)));
  }
  return conclude(claim, cases, fmt::format("d = {}; {}", width, fmt::join(numbers, ", ")));
}

}  // namespace fovea::lab
