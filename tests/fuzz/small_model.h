#pragma once

#include "fovea/model/model.h"
#include "support/small_spec.h"
#include "tokenizer/state/state.h"

namespace fovea {

// Returns a model of this spec with a tokenizer of three words.
inline model::Model small_model(model::Spec spec) {
  static const std::string kTokenizer = R"({"pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "vocab": {"u": 0, "a": 1, "b": 2}, "unk_token": "u"}})";
  spec.vocabulary = 0;
  return model::Model::create(
      spec, text::Tokenizer(text::parse_tokenizer({kTokenizer, ""}, "t", "c")), 1);
}

}  // namespace fovea
