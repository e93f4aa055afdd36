#pragma once

#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fovea {

// A setting of a model's directory is known, harmless or refused. Known: the reader of the file
// uses it. Harmless: settings.inc lists its key, for this file, as one that has no effect on
// results, or its value as one with which it has none. Anything else is refused by name.

// Returns whether a setting that its reader does not use leaves the results as they are: it is
// null, or `file`, the name of a file or of a kind of module, has it in settings.inc.
bool is_harmless(std::string_view file, const std::string& key, const nlohmann::json& value);

// Throws Unsupported, naming the file at `path` and the key, for the first setting of an object
// that is neither among `known` nor harmless in `file`.
void refuse_unknown_settings(const nlohmann::json& settings, const std::string& path,
                             std::string_view file, const std::set<std::string_view>& known);

}  // namespace fovea
