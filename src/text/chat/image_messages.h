#pragma once

// Images in the messages of a conversation: parts {"type": "image"} of contents.

#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/chat.h"

namespace fovea::text {

// Stands for an image in a rendered text if the template does not know parts: U+FDD1, which is no
// character.
inline constexpr std::string_view kShownImage = "\xEF\xB7\x91";

// Whether the template takes contents that are lists of parts.
bool knows_parts(const std::string& source);

// Returns the conversation as a template reads it: with contents that are lists of parts or,
// without `as_parts`, texts in which kShownImage and a line break take the place of each image.
ChatRequest with_shown_images(const ChatRequest& request, bool as_parts);

// Returns the offsets of a special token in a text, without those that guarded() marked.
std::vector<size_t> marks_in(const std::string& text, const std::string& mark);

}  // namespace fovea::text
