// The parts of a form lie within its body, and their contents are between its boundaries.

#include "http/multipart.h"

#include <algorithm>

#include "fuzz.h"
#include "http/request_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fovea::require;
  const std::string_view text = fovea::text_of(data, size);
  // The first line is the Content-Type.
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  try {
    size_t bytes = 0;
    for (const fovea::http::FormPart& part : fovea::http::form_parts(text.substr(0, end), body)) {
      bytes += part.content.size();
      require(part.content.data() >= body.data() &&
                  part.content.data() + part.content.size() <= body.data() + body.size(),
              "a content lies within the body");
    }
    require(bytes <= body.size(), "contents do not overlap");
  } catch (const fovea::http::Refusal& refusal) {
    require(refusal.status == 400, "a refusal is a client error");
    require(refusal.message.find('\n') == std::string::npos, "a refusal is one line");
    require(refusal.message.size() < 500, "a refusal is short");
  }
  return 0;
}
