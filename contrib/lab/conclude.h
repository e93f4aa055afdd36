#pragma once

#include <string>
#include <vector>

#include "lab/table.h"

namespace fovea::lab {

// A case of a claim, such as one model at one length, and whether it holds there.
struct Case {
  std::string name;
  Outcome outcome = Outcome::undecided;
};

// Returns held if all cases hold, holds_only_if if some do, did_not_hold if all fail, and otherwise
// undecided; the sentence names the cases. `numbers` is the rest of the sentence.
Conclusion conclude(const std::string& claim, const std::vector<Case>& cases,
                    const std::string& numbers);

// Returns "NAME A against B (3.1 times)" of the pairs, for a sentence.
std::string compared(const LabPoint& a, const LabPoint& b);
// Returns "SERIES: 0.93 at 4, 0.5 at 16", for a sentence.
std::string course(const Table& table, const std::string& series);

}  // namespace fovea::lab
