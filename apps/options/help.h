#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// What the help of a verb shows: by default the basic options; everything with `all`; one section
// with `section`.
struct HelpRequest {
  bool all = false;
  std::string section;
};

// Removes the section name that follows --help or -h, such as "model", from `arguments` and returns
// it; empty if there is none.
std::string take_section(std::vector<std::string>& arguments, const OptionTable& table);

// Returns what an option does, with its range, its default and its long aliases.
std::string description_of(const Option& option);

// Returns the help of a verb, wrapped to `width` columns.
std::string help_text(const std::string& usage, const std::string& summary,
                      const OptionTable& table, const HelpRequest& request, int width);

}  // namespace fovea::cli
