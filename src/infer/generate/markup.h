#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fovea::infer {

// A line without its mark-up.
struct MarkedLine {
  // A tag of XML or HTML, or a text that the model cannot write.
  struct Tag {
    size_t offset;     // in `plain`, in bytes
    std::string text;  // "<b>"
    // The index of the tag that closes it, its own for a tag without a partner.
    size_t partner;
  };
  std::string plain;
  std::vector<Tag> tags;           // in their order
  std::vector<std::string> fixed;  // URLs and placeholders in `plain`
};

// Removes the tags. URLs and placeholders stay if writes(text) is true, else they are removed as
// tags are.
MarkedLine without_markup(const std::string& line,
                          const std::function<bool(const std::string&)>& writes);

// Inserts the tags into a translation. `aligned`: pairs of words (of `plain`, of the translation).
// A pair of tags encloses the words that are aligned with those between them; other tags precede
// the word that is aligned with the next one.
std::string with_markup(const MarkedLine& line, const std::string& translation,
                        const std::vector<std::pair<int64_t, int64_t>>& aligned);

}  // namespace fovea::infer
