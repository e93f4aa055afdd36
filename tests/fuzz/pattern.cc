// The input is a regular expression, a NUL, and a text: the pieces that are found cover the text.

#include "unicode/pattern.h"

#include "fuzz.h"
#include "unicode/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const auto [expression, text] = two_texts(data, size);
  // Patterns are read from JSON and texts are normalised, so both are UTF-8.
  if (text::utf8::valid_prefix(expression) < expression.size()) return 0;
  if (text::utf8::valid_prefix(text) < text.size()) return 0;
  succeeds_soon([expression, text] {
    std::vector<text::Stretch> stretches;
    text::Pattern::regex(std::string(expression), "fuzz").find(text, stretches);
    uint32_t done = 0;
    for (const text::Stretch& stretch : stretches) {
      require(stretch.begin == done && stretch.end >= done, "stretches are adjacent");
      done = stretch.end;
    }
    require(done == text.size(), "the pieces cover the text");
  });
  return 0;
}
