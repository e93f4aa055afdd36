#include "tokenizer/state/difference.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::text {

std::string difference(const Tokenizer& tokenizer, const Tokenizer& other) {
  for (int32_t id = 0; id < std::min(tokenizer.size(), other.size()); ++id) {
    if (tokenizer.text_of(id) == other.text_of(id)) continue;
    return fmt::format("token {} is \"{}\", not \"{}\"", id, other.text_of(id),
                       tokenizer.text_of(id));
  }
  if (tokenizer.size() == other.size()) return "";
  return fmt::format("the vocabulary has {} tokens, not {}", other.size(), tokenizer.size());
}

}  // namespace fovea::text
