#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::infer {

// Forbids the tokens that would complete one of several texts.
class BannedTexts {
 public:
  BannedTexts(const std::vector<std::string>& texts, const text::Tokenizer& tokenizer);
  // Sets the logits [V] of these tokens after `written` to -infinity.
  void forbid(std::span<const int32_t> written, std::span<float> logits) const;

 private:
  struct Text {
    std::string bytes;
    // By the number of its bytes that are already written: the tokens that begin with the rest. For
    // 0 bytes: the tokens that contain the text.
    std::vector<std::vector<int32_t>> completing;
  };

  std::vector<std::string> tokens_;  // the bytes of each token
  std::vector<Text> texts_;
  size_t longest_ = 0;
};

}  // namespace fovea::infer
