#include "records/text_hash.h"

#include <string>

#include "base/hash.h"

namespace fovea::text {
namespace {

bool is_white(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

uint64_t hash_of_words(std::string_view text) {
  std::string normal;
  for (const char c : text) {
    if (!is_white(c))
      normal += c;
    else if (!normal.empty() && normal.back() != ' ')
      normal += ' ';
  }
  if (normal.ends_with(' ')) normal.pop_back();
  return hash_bytes(normal);
}

}  // namespace fovea::text
