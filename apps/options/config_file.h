#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// A file for --config, in JSON or YAML: options by verb, such as {"generate": {"temperature":
// 0.5}}. A file for train may also hold a Spec, whose keys are beside the verbs.

// The names of the verbs, set at the start of the program.
std::vector<std::string>& config_sections();

nlohmann::ordered_json read_config(const std::string& path);
// Returns the parts of a file that are not options of verbs: a Spec.
nlohmann::ordered_json without_sections(nlohmann::ordered_json config);

// The options under a verb's name, with their values as texts. `allowed` selects the options that
// the file may set. Throws UsageError for other keys.
using ConfigValues = std::vector<std::pair<const Option*, std::vector<std::string>>>;
ConfigValues config_values(const std::string& path, const std::string& verb,
                           const nlohmann::ordered_json& values, const OptionTable& table,
                           const std::function<bool(const Option&)>& allowed);

// Gives the options that are not given the values of the environment, and then those of the file
// that --config names.
void take_environment(OptionTable& table);
void take_config(OptionTable& table, const std::string& verb);

// Returns a file for --config with the given options.
std::string dumped_config(const OptionTable& table, const std::string& verb);

}  // namespace fovea::cli
