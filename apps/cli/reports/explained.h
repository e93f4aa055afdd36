#pragma once

#include <string>
#include <vector>

#include "fovea/study/explain.h"
#include "options/field_options.h"

namespace fovea::cli {

// The options of explanations for a verb; `method` is the spelling of the method's field. Other
// fields of `omitted` are no options.
Spellings explain_spellings(const Spelling& method, const std::vector<std::string>& omitted = {});

// Throws UsageError if an option of explanations is given without --explain.
void check_explain_options(const OptionTable& table);

// How bars are drawn.
struct BarStyle {
  bool colours = false;  // 256 colours; blue below 0, orange above
  bool blocks = false;   // block characters of Unicode, else + and -
};
BarStyle bar_style(bool to_file);

// Returns the scores of the tokens as a table with bars, the deletion tests and the completeness
// error.
std::string explanation_text(const study::Explanation& explanation,
                             const study::ExplainOptions& options, BarStyle style);

}  // namespace fovea::cli
