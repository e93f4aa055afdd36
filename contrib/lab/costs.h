#pragma once

#include <string>

#include "lab/table.h"

// Conclusions on what attention costs beside recurrences, in time or in operations. The series of a
// table are "attention", "rnn", "gru" and "lstm", each with `suffix`; the x values are lengths.
namespace fovea::lab {

// Each recurrence costs `factor` times as much as attention at each length.
Conclusion conclude_ratio(const std::string& claim, const Table& table, const std::string& suffix,
                          double factor);

// Attention is cheaper than each recurrence at all lengths up to one between width / 2 and 2 width,
// and not at the next one.
Conclusion conclude_crossover(const std::string& claim, const Table& table,
                              const std::string& suffix, double width);

}  // namespace fovea::lab
