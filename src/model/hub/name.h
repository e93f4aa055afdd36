#pragma once

// The parts of a name of the Hub. A name may come from a file or from the network, so each part is
// checked before it becomes part of a path or of an address.

#include <string_view>

#include "fovea/model/hub.h"

namespace fovea::model {

struct ParsedHubName {
  HubName name;
  bool certain = false;  // it has hf: or is an address, so it is no path
};
std::optional<ParsedHubName> parse_name(std::string_view text, const HubSettings& settings);

// USER/NAME or NAME, with the characters that the Hub allows.
bool is_repository(std::string_view text);
// A path of which no part is empty, "." or "..", or has control characters or backslashes.
bool is_inner_path(std::string_view text);
bool is_commit(std::string_view text);  // 40 hexadecimal digits

}  // namespace fovea::model
