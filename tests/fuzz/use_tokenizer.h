#pragma once

#include "fuzz.h"
#include "tokenizer/state/state.h"

namespace fovea {

// Encodes and decodes texts with an untrusted tokenizer.
inline void use_tokenizer(const text::Tokenizer& tokenizer) {
  for (const char* text : {"", "Hello,  world", " a  b\n\n123 l'été １２ 日本 <s>[CLS]",
                           "\xff\xc3(\xed\xa0\x80 \xe2\x80\x8d\xf0\x9f\x91\xa9"}) {
    const std::vector<int32_t> ids = tokenizer.encode(text);
    for (const int32_t id : ids)
      require(id >= 0 && id < tokenizer.size(), "an id is in the vocabulary");
    tokenizer.decode(ids);
  }
}

}  // namespace fovea
