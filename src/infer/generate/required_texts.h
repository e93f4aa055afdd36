#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::infer {

// Texts that the output of a beam search contains (GenerateOptions::required). As whole words, they
// do not count within longer ones.
class RequiredTexts {
 public:
  RequiredTexts(const std::vector<std::string>& texts, const text::Tokenizer& tokenizer,
                bool whole_words = false);

  struct Progress {
    int64_t done = 0;  // tokens of the texts that are generated, a begun text included
    // Tokens that begin or continue a text that is not yet generated.
    std::vector<int32_t> next = {};
    // Of these, the tokens that keep what is begun.
    std::vector<int32_t> onward = {};
    int64_t left = 0;  // tokens of the texts that are not generated, as if none of them were begun
    bool ends_word = false;  // a text was just generated, and the next token must not continue it
  };
  Progress after(const std::vector<int32_t>& generated) const;
  // Returns the tokens that continue a word.
  const std::vector<int32_t>& continuing() const { return continuing_; }
  // Returns Progress::done for `generated` followed by `id`.
  int64_t done_after(std::vector<int32_t> generated, int32_t id) const;

 private:
  struct Text {
    std::string bytes;
    std::vector<int32_t> begins;     // its tokens where no word precedes it
    std::vector<int32_t> continues;  // its tokens after a word; empty = the same
    int64_t tokens = 0;              // of the longer of both
  };
  const text::Tokenizer& tokenizer_;
  bool whole_words_;
  std::vector<Text> texts_;
  std::vector<int32_t> continuing_;  // with whole words
};

}  // namespace fovea::infer
