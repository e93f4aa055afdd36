#pragma once

#include <string_view>
#include <vector>

#include "calls/call_reader.h"

namespace fovea::text {

// Calls that a text begins with, as parts of a message, and the position after them.
struct FoundCalls {
  std::vector<MessagePart> parts = {};  // one for each call; empty: the text begins with no call
  size_t end = 0;
};
// Reads calls in any format, with the deviations that models without enforced formats write: keys
// in any order, arguments as a text, literals of Python, missing or additional marks.
FoundCalls find_calls(std::string_view text, const std::vector<Signature>& functions);

// The marks with which calls begin anywhere in a text.
const std::vector<std::string>& call_marks();
// Returns whether the start of a message may be the start of calls without a mark: a JSON object or
// a list of calls. `text` may continue.
bool may_begin_calls(std::string_view text, const std::vector<Signature>& functions);

}  // namespace fovea::text
